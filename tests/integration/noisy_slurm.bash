# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2028  # what the stand-ins run is expanded there
# For tests of what is made of Slurm's answers: source it, then `fake_slurm FOLDER` puts stand-ins there for its commands. What
# they print is in the variables below, so that each test makes them speak as sites' do: with warnings, banners, or not at all.

# Each command COMMAND notes its words in $calls/COMMAND, then runs the shell text in the variable that is called after it:
# sbatch, squeue, sinfo, scontrol, scancel, srun. Without one it prints nothing.
fake_slurm() {
  local command
  mkdir -p "$1" calls
  export calls=$PWD/calls
  for command in sbatch squeue sinfo scontrol scancel srun; do
    printf '#!/bin/bash\necho "${SLURM_CLUSTERS:+$SLURM_CLUSTERS: }$*" >>"$calls/%s"\neval "${%s-}"\n' "$command" "$command" >"$1/$command"
    chmod +x "$1/$command"
  done
}

# How a command may print its answer, $1, and still say it: warnings on standard error, a banner before it, words after it.
ways_to_say() {
  echo "echo '$1'"
  echo "echo 'sbatch: Warning: can not run 1 processes on 2 nodes, setting nnodes to 1' >&2; echo '$1'; echo 12 >&2"
  echo "printf -- '-----\\n   Welcome to cluster 7\\n-----\\n--> Verifying...OK\\n'; echo '$1'"
  echo "printf '$1\\r\\n'; echo 'sbatch: 2 jobs of yours wait'"
}
# How it may say nothing that is one: nothing, other words, two answers, no end, and no answer within the time there is.
ways_not_to_say() {
  echo ''
  echo "echo 'Submitted batch job 4711'; echo 4711 >&2"
  echo "echo 4711; echo 4712"
  echo 'head -c 3000000 /dev/zero | tr "\0" x'
  echo 'exec yes 4711'
  echo 'exec sleep 100'
}
