# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What Slurm says of a job; job.bash sources it.

ask_s=${FOURFOLD_ASK_S:-60}
[[ $ask_s =~ ^(0|[1-9][0-9]{0,3})$ ]] || ask_s=60

# seconds_in NAME DEFAULT: the variable's whole number of seconds; what is none counts as the default, and is told.
seconds_in() {
  local value=${!1-}
  if [[ -z $value || $value =~ ^(0|[1-9][0-9]{0,5})$ ]]; then
    echo "${value:-$2}"
  else
    say "$1=$value is ignored (it is no number of seconds): $2" >&2
    echo "$2"
  fi
}

# forget_tasks: what the job asks for each of its tasks is not for a step that is no part of the run.
forget_tasks() { unset "${!SLURM_GPUS@}" "${!SLURM_NTASKS@}" "${!SLURM_CPUS@}" SRUN_CPUS_PER_TASK SLURM_DISTRIBUTION SLURM_HINT; }

# ask_for SECONDS COMMAND...: its standard output in `answer`, its standard error in `errors`: a warning or a banner there is no
# part of an answer. It is asked without what users set for their own eyes (SINFO_FORMAT, ...). Of the signals that mean the run only
# TERM ends it, which `timeout` does not let it ignore. Returns its code; 143 then, 137 when it was ended for giving none within that time
# (at least 5 s), 141 when it never stopped talking (1 MiB, 64 kiB of errors).
ask_for() {
  local code=1 limit=$(($1 < 5 ? 5 : $1))
  shift
  {
    IFS= read -r -d '' answer
    IFS= read -r -d '' errors
    read -r -d '' code
  } < <({
    trap '' TERM USR1 USR2
    unset "${!SQUEUE_@}" "${!SINFO_@}"
    said=$({
      SLURM_TIME_FORMAT=standard timeout --signal=KILL "$limit" "$@" 3>&- | head -c 1048576 | tr -d '\0' >&3
    } 2>&1 | head -c 65536 | tr -d '\0') && code=0 || code=$?
    printf '\0%s\0%d\0' "$said" "$code"
  } 3>&1)
  [[ ${answer: -1} != $'\n' ]] || answer=${answer:0:-1} # not ${answer%...}, which takes a minute for a MiB
  return "$code"
}

# ask COMMAND...: for FOURFOLD_ASK_S.
ask() { ask_for "$ask_s" "$@"; }

# job_in ANSWER: "NUMBER" or "NUMBER CLUSTER" of what `sbatch --parsable` prints, wherever a site's banner leaves it; nothing when
# no line, or more than one, is a job: which is the right one is not known then.
job_in() {
  local found
  mapfile -t found < <(sed -nE 's/^([1-9][0-9]*)(;([A-Za-z0-9_.-]+))?[[:space:]]*$/\1 \3/p' <<<"$1" | head -n 2)
  [[ ${#found[@]} -ne 1 ]] || echo "${found[0]% }"
}

# seconds_of_limit TEXT: of "1-02:03:04" or "02:03:04", as Slurm shows a time limit; fails for what is none.
seconds_of_limit() {
  [[ $1 =~ ^(([0-9]+)-)?([0-9]+):([0-9]+):([0-9]+)$ ]] || return
  echo $((((10#${BASH_REMATCH[2]:-0} * 24 + 10#${BASH_REMATCH[3]}) * 60 + 10#${BASH_REMATCH[4]}) * 60 + 10#${BASH_REMATCH[5]}))
}

# first_line TEXT: without what comes after it; not ${TEXT%%...}, as in ask_for.
first_line() {
  local line
  IFS= read -r line <<<"$1"
  echo "$line"
}

# facts_of JOB: "Name=value" on a line each; of an array, of the task with that number ("12_3", or one of its own). Without
# what the user may have written: names and commands can look like anything. A controller that does not answer, as while
# another takes over, is asked again for FOURFOLD_ASK_S; fails when that was in vain, or there is no such job.
facts_of() {
  local answer errors until=$((SECONDS + ask_s))
  [[ -n $1 ]] && command -v scontrol >/dev/null || return 1
  until ask scontrol show job "$1"; do
    [[ $errors != *'Invalid job id'* && $SECONDS -lt $until ]] || return 1
    sleep 2
  done
  awk -v job="$1" '
    /^JobId=/ {
      if (is_it) exit
      is_it = job ~ /_/ || $0 ~ "^JobId=" job " "
      sub(/ JobName=.*/, "")
      if (is_it) print
      next
    }
    is_it && /^   [^ ]/ && !/^ *(Command|WorkDir|Std(Err|In|Out)|(Admin|System)?Comment|Extra|Wckey)=/' <<<"$answer" |
    tr -s ' ' '\n' | grep '='
}

# number_of FACTS JOB: by which Slurm means this one alone: the number of an array's last task is that of all.
number_of() {
  local task
  task=$(field ArrayTaskId "$1")
  echo "${task:+$(field ArrayJobId "$1")_}${task:-$2}"
}

# is_cancelled JOB: somebody has cancelled it (scancel): Slurm is clearing it, and names no reason, as its time limit or a node.
is_cancelled() {
  local now
  now=$(facts_of "$1") && [[ $(field JobState "$now") =~ ^(COMPLETING|CANCELLED)$ && -z $(field Reason "$now") && $(field PreemptTime "$now") != 20* ]]
}

# command_of JOB: the script that was submitted; nothing for one that was no file.
command_of() {
  local answer errors
  ask scontrol show job "$1" && sed -n 's/^ *Command=//p' <<<"$answer" | grep -vxF '(null)' | head -n 1
}

# is_gone JOB HEAD: whether Slurm says that there is no such job, or one that begins otherwise (head_of; empty: not known). A controller that is killed has forgotten what it
# was told in its last seconds, and gives the number to the next job that comes.
is_gone() {
  local answer errors until=$((SECONDS + ask_s))
  until ask scontrol show job "$1"; do
    [[ $errors != *'Invalid job id'* ]] || return 0
    [[ $SECONDS -lt $until ]] || return 1
    sleep 2
  done
  [[ -n $2 && $(first_line "$answer") != "$2" ]]
}

# head_of JOB: number and name.
head_of() {
  local answer errors
  ! ask scontrol show job "$1" || first_line "$answer"
}

# log_of JOB: where its standard output goes.
log_of() {
  local answer errors
  ask scontrol show job "$1" && sed -n 's/^ *StdOut=//p' <<<"$answer" | head -n 1
}

# Where a job's comment says which run file it goes on with: Slurm keeps it when a job goes back into the queue, and whatever a
# user has written before it.
run_mark=fourfold-run-file=

# comment_of JOB [SECONDS]: without the blank that Slurm puts after it. A controller that does not answer is asked again for so long; fails when
# that was in vain, or there is no such job.
comment_of() {
  local answer errors until=$((SECONDS + ${2:-0}))
  [[ -n $1 ]] && command -v scontrol >/dev/null || return
  until ask scontrol show job "$1"; do
    [[ $errors != *'Invalid job id'* && $SECONDS -lt $until ]] || return 1
    sleep 2
  done
  sed -n 's/^ *Comment=\(.*[^ ]\) *$/\1/p' <<<"$answer" | head -n 1
}

# needs_log_dir RUN_FILE: of one that is kept in it. Where that folder is not there, its file system may not be mounted on this node: the job goes
# elsewhere, as often as `needs`.
needs_log_dir() {
  local folder=${1%/submitted/*} pause
  [[ $1 == /*/submitted/*/* ]] || return 0
  for pause in 0 2 10; do
    sleep "$pause"
    [[ ! -e $folder ]] || return 0
  done
  say "${SLURMD_NODENAME:-this node} does not have $folder, where what this job trains is kept (a file system that is not mounted? where you have removed it, submit anew)"
  trap '' TERM USR1 USR2 # of the requeue
  # shellcheck disable=SC2154  # told_to_stop, own_number: of job.bash
  [[ -z $own_number || -z ${SLURMD_NODENAME-} || $told_to_stop == SIGTERM || ${FOURFOLD_REQUEUE-} == 0 ]] || go_elsewhere "$own_number" "$SLURMD_NODENAME"
  exit 78
}

# kept_run_in COMMENT: the run file in it, which may be gone; nothing where there is none.
kept_run_in() { sed -n "s|^.*$run_mark||p" <<<"$1"; }

# note_run JOB FILE: FILE is the run file that this job goes on with.
note_run() {
  local before answer errors
  before=$(comment_of "$1" | sed "s| *$run_mark.*||")
  ask scontrol update "JobId=$1" "Comment=${before:+$before }$run_mark$2" || {
    say "job $1 could not be told its run file ($errors): it reads log.dir in the one that it was submitted with"
    return 1
  }
}

# note_not_run JOB COUNT: so many starts in a row, of this job or before it, could not run the program (not_run, and elsewhere.bash).
note_not_run() {
  local answer errors
  ask scontrol update "JobId=$1" "Comment=$(with_count "$(comment_of "$1")" "$2")" || say "job $1 could not be told of the starts before it ($errors)"
}

# gpus_of TRES: of "gres:gpu:a100:2" or "gres/gpu:2", what --gpus takes.
gpus_of() { sed -E 's|.*gres[:/]gpu[:=]([^,(]*).*|\1|' <<<"$1"; }

# options_of FACTS: the options of sbatch, one on a line, by which another job asks for what this one did, as far as Slurm
# tells them.
options_of() {
  local option value facts=$1
  for option in account=Account partition=Partition qos=QOS time=TimeLimit constraint=Features reservation=Reservation \
    licenses=Licenses mem=MinMemoryNode mem-per-cpu=MinMemoryCPU mem-per-gpu=MemPerTres nice=Nice mincpus=MinCPUsNode \
    cpus-per-task=CPUs/Task cpus-per-gpu=CpusPerTres ntasks-per-node=NtasksPerN:B:S:C gres=TresPerNode gpus=TresPerJob \
    gpus-per-task=TresPerTask exclusive=OverSubscribe; do
    value=$(field "${option#*=}" "$facts")
    option=${option%%=*}
    case $option in
      ntasks-per-node) value=${value%%:*} ;;&
      ntasks-per-node | nice) [[ $value != 0 ]] || continue ;;
      mem) [[ -z $(field MemPerTres "$facts") ]] || continue ;; # Slurm takes one of them, and works out the other
      mincpus | cpus-per-task) [[ $value != 1 && -z $(field CpusPerTres "$facts") ]] || continue ;;
      gres) value=$(sed -E 's|gres[:/]||g' <<<"$value") ;;
      gpus | gpus-per-task | *-per-gpu) [[ $value == *gpu* ]] || continue && value=$(gpus_of "$value") ;;
      exclusive)
        case $value in
          NO) echo --exclusive && continue ;;
          USER) value=user ;;
          *) continue ;;
        esac
        ;;
    esac
    [[ -z $value ]] || echo "--$option=$value"
  done
}
