# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the batch scripts here have in common; they source it. README.md in this folder explains the variables.

set -uo pipefail

fourfold_slurm=$(dirname -- "${BASH_SOURCE[0]}")
: "${FOURFOLD:=fourfold}"

# What this site needs: a name from sites/, or a file of your own.
case ${FOURFOLD_SITE-} in
  '') ;;
  */*)
    # shellcheck source=/dev/null
    . "$FOURFOLD_SITE" || exit 78
    ;;
  *)
    # shellcheck source=/dev/null
    . "$fourfold_slurm/sites/$FOURFOLD_SITE.sh" || exit 78
    ;;
esac

# say WORD...: a line of the job's log that is not fourfold's.
say() { printf '[job %s] %s\n' "${SLURM_JOB_ID:-none}" "$*"; }

# When the job ends, in seconds since 1970. Slurm tells by itself from 23.02 on.
if [[ -z ${FOURFOLD_DEADLINE-} ]]; then
  if [[ -n ${SLURM_JOB_END_TIME-} ]]; then
    export FOURFOLD_DEADLINE=$SLURM_JOB_END_TIME
  elif end=$(squeue --noheader --jobs="${SLURM_JOB_ID-}" --format=%e 2>/dev/null) && [[ $end == 20* ]]; then
    FOURFOLD_DEADLINE=$(date --date="$end" +%s)
    export FOURFOLD_DEADLINE
  fi
fi

# A step does not inherit --cpus-per-task from Slurm 22.05 on, unless this says so.
[[ -z ${SLURM_CPUS_PER_TASK-} ]] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

# launch ARGUMENT...: fourfold on all tasks of the job. Returns when it has ended, whatever signals come meanwhile: Slurm
# sends TERM to the steps and to this script, and what fourfold then saves must not be cut off.
# A step of which one task fails is ended (-K): the others would wait for that task until the time limit.
launch() {
  local code=0
  trap 'say "SIGTERM: waiting for fourfold to save"' TERM
  srun ${FOURFOLD_MPI:+"--mpi=$FOURFOLD_MPI"} --kill-on-bad-exit=1 --wait=60 --unbuffered "$FOURFOLD" "$@" &
  local step=$!
  # A signal ends `wait` before the step has ended.
  until wait "$step" && code=0 || code=$?; [[ $code -le 128 ]] || ! kill -0 "$step" 2>/dev/null; do :; done
  trap - TERM
  return "$code"
}

# is_preempted: Slurm is taking the job's nodes away for another job. It would put this one back into the queue when the
# grace time is over, but not if the job has ended by itself before.
is_preempted() { scontrol show job "$SLURM_JOB_ID" 2>/dev/null | grep -Eq '\<PreemptTime=[0-9]'; }

# train_job ARGUMENT...: `fourfold train ARGUMENT...` as one start of its chain. Sets `outcome` to "again", "finished" or
# "stop"; returns the exit code of the run (docs/exit-codes.md), which exit.json knows better than srun.
train_job() {
  local code=0
  outcome=$("$FOURFOLD" job begin "$@") || { code=$?; outcome=stop; return "$code"; }
  if [[ $outcome == finished ]]; then
    say "the run is finished: nothing to do"
    return 0
  fi
  say "starting on ${SLURM_JOB_NODELIST-}, restart ${SLURM_RESTART_COUNT:-0}"
  launch train "$@" || code=$?
  outcome=$("$FOURFOLD" job end "$@" --launcher-code "$code") && code=0 || code=$?
  return "$code"
}
