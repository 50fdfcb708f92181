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

# own_job: what Slurm says of this job, on one line; of an array, of this task.
own_job() {
  scontrol --oneliner show job "${SLURM_JOB_ID-}" 2>/dev/null | grep "^JobId=${SLURM_JOB_ID-} "
}
# field NAME LINE: what it says of that; nothing for what is not set.
field() { sed -n "s/.*\<$1=\([^ ]*\).*/\1/p" <<<"$2" | grep -vxF '(null)'; }

# A job that was submitted in a job that had been restarted inherits that one's count.
if restarts=$(field Restarts "$(own_job)"); then
  export SLURM_RESTART_COUNT=$restarts
fi

# Slurm sends this one to the steps. Who sends it to this script as well (scancel --full, --batch) means the run, and not
# bash, which it would end: launch passes it on.
trap '' USR2

# When this job ends, in seconds since 1970; Slurm tells by itself from 23.02 on. Not exported: the next job of a chain would
# inherit it.
deadline=${FOURFOLD_DEADLINE:-${SLURM_JOB_END_TIME-}}
if [[ -z $deadline ]] && end=$(squeue --noheader --jobs="${SLURM_JOB_ID-}" --format=%e 2>/dev/null) && [[ $end == 20* ]]; then
  deadline=$(date --date="$end" +%s)
fi

# A step does not inherit --cpus-per-task from Slurm 22.05 on, unless this says so.
[[ -z ${SLURM_CPUS_PER_TASK-} ]] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

# launch COUNT ARGUMENT...: fourfold on that many tasks, or on all of the job ("all"). Returns when it has ended, whatever
# signals come meanwhile: Slurm sends TERM to the steps and to this script, and what fourfold then saves must not be cut off.
# A step of which one task fails is ended: the others would wait for that task until the time limit (kill_on_bad_exit=0: not).
launch() {
  local count=$1 code=0 some=() per_node=${FOURFOLD_TASKS_PER_NODE:-${SLURM_NTASKS_PER_NODE-}}
  shift
  [[ -z ${FOURFOLD_TASKS_PER_NODE-} ]] || some=(--ntasks-per-node="$per_node")
  [[ $count != all || -z ${FOURFOLD_TASKS_PER_NODE-} ]] || count=$((per_node * SLURM_JOB_NUM_NODES))
  if [[ $count != all ]]; then
    : "${per_node:=$(((${SLURM_NTASKS:-$SLURM_JOB_NUM_NODES} - 1) / SLURM_JOB_NUM_NODES + 1))}"
    some+=(--ntasks="$count" --nodes=$(((count - 1) / per_node + 1)))
  fi
  local -x FOURFOLD_DEADLINE=$deadline
  trap 'say "SIGTERM: waiting for fourfold to save"' TERM
  trap 'say "SIGUSR2: passed on" && scancel --signal=USR2 "$SLURM_JOB_ID"' USR2
  srun ${FOURFOLD_MPI:+"--mpi=$FOURFOLD_MPI"} "${some[@]}" --kill-on-bad-exit="${kill_on_bad_exit:-1}" --wait=60 --unbuffered "$FOURFOLD" "$@" &
  local step=$!
  # A signal ends `wait` before the step has ended.
  until wait "$step" && code=0 || code=$?; [[ $code -le 128 ]] || ! kill -0 "$step" 2>/dev/null; do :; done
  trap - TERM
  trap '' USR2
  return "$code"
}

# is_preempted: Slurm is taking the job's nodes away for another job. It would put this one back into the queue when the
# grace time is over, but not if the job has ended by itself before.
is_preempted() { own_job | grep -Eq '\<PreemptTime=[0-9]'; }

# train_job ARGUMENT...: `fourfold train ARGUMENT...` as one start of its chain. Sets `outcome` to "again", "finished",
# "stop" or "superseded" (the chain has gone on without this job, which has to leave everything as it is), `preempted` to 1
# if it was, and `bad_nodes` to those that failed, with commas. Returns the exit code of the run (docs/exit-codes.md), which
# exit.json knows better than srun.
# shellcheck disable=SC2034  # for the scripts that source this
train_job() {
  local code=0 answer lines also=()
  outcome=stop preempted=0 bad_nodes=''
  answer=$("$FOURFOLD" job begin "$@") || return
  mapfile -t lines <<<"$answer" # "start", the number of tasks, arguments
  if [[ ${lines[0]} == finished ]]; then
    outcome=finished
    say "the run is finished: nothing to do"
    return 0
  fi
  say "starting on ${SLURM_JOB_NODELIST-}, restart ${SLURM_RESTART_COUNT:-0}"
  launch "${lines[1]}" train "$@" "${lines[@]:2}" || code=$?
  ! is_preempted || { preempted=1 && also=(--preempted); }
  answer=$("$FOURFOLD" job end "$@" --launcher-code "$code" "${also[@]}") && code=0 || code=$?
  read -r outcome bad_nodes <<<"$answer"
  [[ -z $bad_nodes ]] || bad_nodes=$(nodes_of "$bad_nodes")
  return "$code"
}

# nodes_of HOSTS: the job's nodes that these hosts (with commas, as they call themselves) are to Slurm, with commas.
nodes_of() {
  local line name host bad found=()
  while read -r line; do
    name=$(sed -n 's/.*\<NodeName=\([^ ]*\).*/\1/p' <<<"$line") host=$(sed -n 's/.*\<NodeHostName=\([^ ]*\).*/\1/p' <<<"$line")
    for bad in ${1//,/ }; do
      [[ $bad != "$name" && $bad != "$host" && ${bad%%.*} != "${name%%.*}" && ${bad%%.*} != "${host%%.*}" ]] || found+=("$name")
    done
  done < <(scontrol --oneliner show node "${SLURM_JOB_NODELIST-}" 2>/dev/null)
  (IFS=, && echo "${found[*]}")
}

# nodes_that_work: those of the job's partition that Slurm starts jobs on, now or when they are free. (A "*" says that a node
# does not answer.)
nodes_that_work() {
  sinfo --noheader --Node --partition="$SLURM_JOB_PARTITION" --format='%N %T' |
    sed -nE 's/^([^ ]+) (idle|mixed|allocated|completing|planned|reserved)[^*]*$/\1/p' | sort -u
}

# leave_out JOB NODES: the pending JOB is to start without these nodes and those it leaves out already, if the partition has
# enough others: else it would wait for ever, and Slurm itself starts nothing on a node that it knows to be down.
leave_out() {
  local job=$1 nodes=$2 needed=${FOURFOLD_NODES:-${SLURM_JOB_NUM_NODES:-1}} before
  [[ -n $nodes ]] || return 0
  before=$(scontrol show job "$job" | sed -n 's/.* ExcNodeList=\([^ ]*\).*/\1/p')
  [[ $before == '(null)' || -z $before ]] || nodes=$before,$nodes
  if [[ $(comm -23 <(nodes_that_work) <(scontrol show hostnames "$nodes" | sort -u) | wc -l) -lt ${needed%%-*} ]]; then
    say "would leave out $nodes, but the partition has too few others"
    return 0
  fi
  scontrol update "JobId=$job" "ExcNodeList=$nodes" && say "job $job leaves out $nodes"
}

# wants_requeue CODE: whether a job whose run has ended with this code goes back into the queue by itself.
wants_requeue() {
  [[ $outcome == again ]] || return
  case ${FOURFOLD_REQUEUE-} in
    1) return 0 ;;
    0) return 1 ;;
    *) [[ $preempted == 1 || $1 == 85 || $1 == 86 ]] ;;
  esac
}

# requeue: this job again, when there is room; not if Slurm has started it again meanwhile, and this script is what a node
# that it has given up still runs, and not if somebody has cancelled it. Nothing of the script runs for long behind it: Slurm
# ends it.
requeue() {
  local job task
  job=$(own_job)
  if ! grep -q "\<Restarts=${SLURM_RESTART_COUNT:-0}\>" <<<"$job"; then
    say "Slurm has put the job back into the queue by itself"
  elif ! grep -q '\<JobState=RUNNING\>' <<<"$job" && [[ -z $deadline || $(date +%s) -lt $deadline ]]; then
    say "the job was cancelled: it is not put back into the queue"
  else
    trap '' TERM
    task=$(field ArrayTaskId "$job") # the number of an array's last task is that of all
    task=${task:+$(field ArrayJobId "$job")_$task}
    scontrol requeue "${task:=$SLURM_JOB_ID}" && leave_out "$task" "$bad_nodes"
  fi
}
