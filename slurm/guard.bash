# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A step on a node of its job that is not the batch script's (restart_inside.bash): once Slurm has taken the batch script's node out of the
# job, nobody is left who could launch anything, and the job goes back into the queue, or, of a chain, ends.

say() { printf '%s\n' "[job $SLURM_JOB_ID] $*"; }
# shellcheck source=slurm/own_job.bash
. "$(dirname -- "${BASH_SOURCE[0]}")/own_job.bash"
# shellcheck source=slurm/elsewhere.bash
. "$(dirname -- "${BASH_SOURCE[0]}")/elsewhere.bash"

# A signal to the steps is the run's. Between two launches this is the only step: the batch script hears of it, once.
told=''
tell_script() { [[ -n $told ]] || { told=1 && scancel --batch --signal="$1" "$SLURM_JOB_ID"; }; }
trap 'tell_script USR1' USR1
trap 'tell_script USR2' USR2

guard_s=$(seconds_in FOURFOLD_GUARD_S 10)
exec {never}<> <(:)
# A signal ends neither the builtin's wait nor this loop.
while ! read -r -t $((guard_s > 0 ? guard_s : 1)) -u "$never" _; do
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
