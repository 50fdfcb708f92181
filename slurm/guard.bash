# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A step on a node of its job that is not the batch script's (restart_inside.bash): once Slurm has taken the batch script's node out of the
# job, nobody is left who could launch anything, and the job goes back into the queue, or, of a chain, ends.

trap '' USR1 USR2 # those of the run
say() { printf '%s\n' "[job $SLURM_JOB_ID] $*"; }
# shellcheck source=slurm/own_job.bash
. "$(dirname -- "${BASH_SOURCE[0]}")/own_job.bash"
# shellcheck source=slurm/elsewhere.bash
. "$(dirname -- "${BASH_SOURCE[0]}")/elsewhere.bash"

guard_s=$(seconds_in FOURFOLD_GUARD_S 10)
while sleep $((guard_s > 0 ? guard_s : 1)); do
  facts=$(facts_of "$SLURM_JOB_ID") || continue
  [[ $(field JobState "$facts") == RUNNING ]] || exit 0
  batch=$(field BatchHost "$facts")
  nodes=$(hosts_of "$(field NodeList "$facts")")
  [[ -n $batch && -n $nodes ]] || continue
  ! grep -qxF "$batch" <<<"$nodes" || continue
  own_number=$(number_of "$facts" "$SLURM_JOB_ID")
  log=$(log_of "$own_number")
  [[ ! -f $log ]] || say "$batch, where the batch script ran, has failed: the job ends, and the queue's way is taken" >>"$log"
  if [[ $(field Requeue "$facts") == 1 ]]; then
    scontrol requeue "$own_number"
  else
    scancel "$own_number"
  fi
done
