# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the batch scripts here have in common; they source it. README.md in this folder explains the variables.

set -uo pipefail

fourfold_slurm=$(dirname -- "${BASH_SOURCE[0]}")
: "${FOURFOLD:=fourfold}"

# say WORD...: a line of the job's log that is not fourfold's. Names come from Slurm and users: nothing of them that a terminal
# obeys is shown (controls, also of Latin 1, and what turns the direction of text), and none begins a line. Byte by byte, since
# what a job's locale takes for a character is not known.
say() {
  local LC_ALL=C text="[job ${SLURM_JOB_ID:-none}] $*"
  text=${text//[[:cntrl:]]/?}
  text=${text//$'\xc2'[$'\x80'-$'\x9f']/?}
  text=${text//$'\xe2\x80'[$'\xaa'-$'\xae']/?}
  printf '%s\n' "${text//$'\xe2\x81'[$'\xa6'-$'\xa9']/?}"
}

# What a user has set must be what it is meant for: a wrong word would end the script somewhere, or each job of a chain.
refuse_unlike() { # NAME PATTERN WHAT
  [[ ! -v $1 || ${!1} =~ ^($2)?$ ]] || { say "$1=${!1} is not $3: correct it, or unset it" && exit 78; }
}
for name in MOST_STARTS STUCK_AFTER LINK LAUNCH; do refuse_unlike "FOURFOLD_$name" '0|[1-9][0-9]{0,8}' 'a whole number'; done
refuse_unlike FOURFOLD_TASKS_PER_NODE '[1-9][0-9]{0,8}' 'a number of tasks'
refuse_unlike FOURFOLD_NODES '[1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?' 'a number of nodes (4, or 2-4)'
refuse_unlike FOURFOLD_REQUEUE '[01]' '0 or 1'

# Signals that mean the run: it is to save and stop. Slurm sends them to the steps; whoever sends them to this script as well
# (scancel --full, --batch; TERM at the job's end) does not mean bash, which they would end. Until there is a step they are kept
# here, and the run is not launched then.
told_to_stop=${FOURFOLD_TOLD_TO_STOP-} was_told=${FOURFOLD_TOLD_TO_STOP-}
unset FOURFOLD_TOLD_TO_STOP
keep_signals() {
  local signal
  for signal in TERM USR1 USR2; do
    # shellcheck disable=SC2064  # of each its own name
    trap "told_to_stop=SIG$signal; say 'SIG$signal'" "$signal"
  done
}
keep_signals

# deaf: for a subshell, which none of these signals is to end, though this script keeps them.
deaf() { trap '' TERM USR1 USR2; }

# in_peace COMMAND...: its standard output in `answer`; these signals do not end it, whoever else gets them. Should one come before
# bash ignores it there, nothing has begun yet.
in_peace() {
  local code=0
  until answer=$(trap '' TERM USR1 USR2 && exec "$@") && code=0 || code=$?; [[ -n $answer || -z $told_to_stop || ! $code =~ ^(138|140|143)$ ]]; do :; done
  return "$code"
}

# shellcheck source=slurm/own_job.bash
. "$fourfold_slurm/own_job.bash"
# shellcheck source=slurm/elsewhere.bash
. "$fourfold_slurm/elsewhere.bash"
# shellcheck source=slurm/restart_inside.bash
. "$fourfold_slurm/restart_inside.bash"
[[ -z $restarts_inside ]] || start_guard "${SLURM_JOB_NODELIST-}" # at once: until it is there nobody sees the node of this script fail

# What this site needs: a name from sites/, or a file of your own. Modules and vendors' scripts read variables that are not set,
# and a file that fails, or exits, does not leave the job's end unexplained. One that a signal has disturbed is read again, by the
# same script.
site_failed() {
  local code=$?
  if [[ -n $told_to_stop && -z $was_told ]]; then
    export FOURFOLD_TOLD_TO_STOP=$told_to_stop SRUN_CPUS_PER_TASK=$inherited_cpus
    [[ -n $inherited_cpus ]] || unset SRUN_CPUS_PER_TASK
    cd -- "$work_folder" || exit 78
    exec bash "$0" "$@"
  fi
  if [[ $code -eq 0 ]]; then
    say "the site file $FOURFOLD_SITE has left the batch script, which reads it as a part of itself: take its exit out"
  else
    say "the site file $FOURFOLD_SITE ended with code $code: correct it (its last command has to succeed)"
  fi
  exit 78
}
inherited_cpus=${SRUN_CPUS_PER_TASK-}
if [[ -n ${FOURFOLD_SITE-} ]]; then
  [[ $FOURFOLD_SITE == */* ]] || FOURFOLD_SITE=$fourfold_slurm/sites/$FOURFOLD_SITE.sh
  [[ -r $FOURFOLD_SITE ]] || { say "the site file $FOURFOLD_SITE cannot be read (FOURFOLD_SITE names it): correct the name" && exit 78; }
  trap 'site_failed "$@"' EXIT
  work_folder=$PWD
  set +u
  # shellcheck source=/dev/null
  . "$FOURFOLD_SITE" || exit
  trap - EXIT
  set +e -uo pipefail
  if [[ $PWD != "$work_folder" ]]; then
    say "the site file $FOURFOLD_SITE has gone to $PWD: back to $work_folder, from which the run file's paths are meant"
    cd -- "$work_folder" || exit 78
  fi
fi

# shellcheck source=slurm/nodes.bash
. "$fourfold_slurm/nodes.bash"
# shellcheck source=slurm/launch.bash
. "$fourfold_slurm/launch.bash"
[[ -z $restarts_inside ]] || kill -0 "$guard" 2>/dev/null || start_guard "${SLURM_JOB_NODELIST-}" # srun may be there only now

# know_own_facts: what this job is. A job that was submitted in another one inherits the variables that only that one had.
own_number=${SLURM_JOB_ID-}
unset SBATCH_WAIT FOURFOLD_LAUNCH FOURFOLD_HELD_NODES # the next job waits for this one; and this is its first launch
know_own_facts() {
  own_facts=$(facts_of "$own_number") || return
  SLURM_RESTART_COUNT=$(field Restarts "$own_facts") && export SLURM_RESTART_COUNT
  [[ $(field NtasksPerN:B:S:C "$own_facts") != 0:* ]] || unset SLURM_NTASKS_PER_NODE
  if [[ $(field CPUs/Task "$own_facts") == 1 ]]; then
    unset SLURM_CPUS_PER_TASK
    # Where the script starts the tasks, Slurm was not told how many CPUs each has; the site's file may know better.
    [[ -n ${FOURFOLD_TASKS_PER_NODE-} || ${SRUN_CPUS_PER_TASK-} != "$inherited_cpus" ]] || unset SRUN_CPUS_PER_TASK
  fi
  [[ -n $(field TresPerNode "$own_facts") ]] || unset SLURM_GPUS_PER_NODE
  [[ -n $(field TresPerTask "$own_facts") ]] || unset SLURM_GPUS_PER_TASK
  [[ -n $(field TresPerJob "$own_facts") ]] || unset SLURM_GPUS
  own_number=$(number_of "$own_facts" "$own_number")
}
know_own_facts || :

# The run file that an earlier start has kept for this one (run-directory.md): whatever its user has made of theirs since.
goes_on=0 later_start='' comment_is_known=1 # with the run file of an earlier start, which `fourfold submit` names itself
[[ (${SLURM_RESTART_COUNT:-0} == 0 && ${FOURFOLD_LINK:-1} == 1) || $* == */submitted/* ]] || goes_on=1
own_comment=$(comment_of "$own_number" $((goes_on * 5 * ask_s))) || comment_is_known=0
if [[ $comment_is_known == 0 && $goes_on == 1 && -n $own_number ]] && command -v scontrol >/dev/null; then
  say "Slurm does not say which run file this job goes on with: it is looked for in log.dir"
  later_start=1
fi
# A controller that was away may be there by now.
if [[ -z $own_facts && -n $own_number ]] && ! { [[ $comment_is_known == 1 ]] && know_own_facts; }; then
  say "Slurm does not say what this job is: its end is not known, nor how often it was restarted"
fi
kept_run=$(kept_run_in "$own_comment")
# The job before this one could not tell it.
[[ ${FOURFOLD_LATER_START-} != 1 || -n $kept_run ]] || later_start=1
unset FOURFOLD_LATER_START
needs_log_dir "$kept_run"
times_not_run=$(count_in "$own_comment") # starts in a row before this one

# When this job ends, in seconds since 1970; Slurm tells by itself from 23.02 on. Not exported: the next job of a chain would
# inherit it. What lies behind us was meant for another job, or for this one before it was restarted.
deadline=${FOURFOLD_DEADLINE:-${SLURM_JOB_END_TIME-}}
export -n FOURFOLD_DEADLINE
[[ $deadline =~ ^[0-9]+$ && $deadline -gt $(date +%s) ]] || deadline=''
# shellcheck disable=SC2034  # for launch.bash
deadline_was_given=${deadline:+${FOURFOLD_DEADLINE:+1}}
if [[ -z $deadline ]] && end=$(field EndTime "$own_facts") && [[ $end == 20* ]]; then
  deadline=$(date --date="$end" +%s)
fi

# A step does not inherit --cpus-per-task from Slurm 22.05 on, unless this says so.
[[ -z ${SLURM_CPUS_PER_TASK-} ]] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

# log_bytes: how long this job's log is; nothing where it is no file.
log_bytes() { [[ ! -f /proc/$$/fd/2 ]] || stat --dereference --format=%s "/proc/$$/fd/2"; }

# words_since BYTES: what srun and the daemons of its nodes have written into the job's log after these: why a rank was killed stands
# nowhere else where Slurm keeps no accounts.
words_since() {
  [[ -z $1 ]] || tail --bytes="+$(($1 + 1))" "/proc/$$/fd/2" 2>/dev/null | tail --bytes=4194304 | tr -d '\0' |
    grep -aE '^(srun|slurmstepd[^ :]*): ' | cut -c 1-2000 | head -c 32000
}

# memory_limit: what this job may take of each node's memory, and who has set that.
memory_limit() {
  local answer='' errors='' key per='' value default=''
  for key in MemPerCPU MemPerNode; do
    value=$(field "Min${key/MemPer/Memory}" "$own_facts")
    if [[ -n $value && $value != 0 ]]; then per=$key && break; fi
  done
  [[ -n $per ]] || return
  if ask scontrol --oneliner show partition "$(field Partition "$own_facts")"; then
    default=$(tr ' ' '\n' <<<"$answer" | sed -n "s/^Def$per=\([0-9]*\)$/\1/p")
  fi
  [[ -n $default ]] || { ask scontrol show config && default=$(sed -n "s/^Def$per *= *\([0-9]*\)$/\1/p" <<<"$answer"); }
  if [[ $default == "$(numfmt --from=iec "$value" --to-unit=1048576 2>/dev/null)" ]]; then
    echo "$value for each ${per#MemPer}, the default of the cluster or of partition $(field Partition "$own_facts"): Def$per"
  else
    [[ $per == MemPerCPU ]] && echo "--mem-per-cpu=$value of the job" || echo "--mem=$value of the job"
  fi
}

# why_slurm_stops: what the run, which has got no more than a signal, cannot know: "preempted" (Slurm is taking the job's nodes away for
# another job; it would put this one back into the queue when the grace time is over, but not if the job has ended by itself before),
# "time-limit" (also one that somebody has moved nearer), or nothing.
why_slurm_stops() {
  local facts
  facts=$(facts_of "${SLURM_JOB_ID-}") || facts=''
  if [[ $(field PreemptTime "$facts") == 20* ]]; then
    echo preempted
  elif [[ $end_was_moved == 1 || $(field Reason "$facts") == TimeLimit ]]; then
    echo time-limit
  fi
}

# job_answer WORD... <<<TEXT: of what `fourfold job` prints, what stands from its answer on, which is a line that begins with
# one of these words. A module or a container that $FOURFOLD is run in may print lines of its own before it.
job_answer() { sed -nE "/^($(IFS='|' && echo "$*"))( |\$)/,\$p"; }

# cannot_run CODE: no code of fourfold, but what a shell makes of a program that is not there, cannot be run, or was killed.
cannot_run() { [[ $1 -eq 126 || $1 -eq 127 || $1 -ge 128 ]]; }

# not_run CODE: `job begin` has ended so. Where the program of this script's node cannot be run, another node's may be: sets `outcome`, `bad_nodes` and `code`, for
# two jobs in a row (their comment counts them, and stays when a job goes back into the queue).
# shellcheck disable=SC2034  # for the scripts that source this
not_run() {
  local node=${SLURMD_NODENAME:-$HOSTNAME}
  cannot_run "$1" || return 0
  if [[ $told_to_stop == SIGUSR2 ]] && is_end_known; then told_to_stop=''; fi
  if [[ -n $told_to_stop ]]; then # before anything could begin
    outcome=again code=75
    return
  fi
  say "$FOURFOLD job begin cannot be run on $node (code $1): the program is not there, or does not work there"
  starts_not_run=$((times_not_run + 1))
  if [[ $starts_not_run -lt 3 ]]; then
    outcome=again code=85 bad_nodes=${SLURMD_NODENAME-}
  else
    say "the same of the two starts before this one: see to it, then submit anew"
  fi
}

# note_end ARGUMENT...: `fourfold job end ARGUMENT...`; sets `outcome` and `bad_nodes`, and returns the code that it decides.
# shellcheck disable=SC2034  # for the scripts that source this
note_end() {
  local code=0 answer pause
  [[ -z ${no_next-} ]] || set -- "$@" --no-next "$no_next"
  [[ -z ${next-} ]] || set -- "$@" --next "$next"
  for pause in 0 2 5; do # an installation may just be replaced
    sleep "$pause"
    in_peace "$FOURFOLD" job end ${kept_run:+--kept-run-file "$kept_run"} "$@" && code=0 || code=$?
    answer=$(deaf && job_answer again finished stop superseded <<<"$answer")
    if [[ -n $answer ]] || ! cannot_run "$code"; then break; fi
  done
  if [[ -z $answer ]] && cannot_run "$code"; then
    say "$FOURFOLD job end cannot be run (code $code): how the run has ended the next start notes"
    outcome=again
    return 85
  fi
  read -r outcome bad_nodes <<<"$answer"
  : "${outcome:=stop}"
  [[ -z $bad_nodes ]] || bad_nodes=$(deaf && nodes_of "$bad_nodes")
  return "$code"
}

# tell_next FILE: the next job of the chain goes on with it.
# shellcheck disable=SC2034  # told_next: for successor.bash
tell_next() { note_run "$next" "$1" && told_next=$next; }

# take_run_file NAME FILE ARGUMENT...: sets `taken`, the arguments with FILE in place of the first that is NAME. This job goes on
# with FILE then, whenever it starts again, and so does the next one of its chain.
take_run_file() {
  local name=$1 one
  [[ $kept_run == "$2" ]] || note_run "$own_number" "$2"
  [[ -z ${next-} || -n ${cluster-} ]] || tell_next "$2"
  kept_run=$2 taken=()
  # Of an array, what this task's line says, too.
  # shellcheck disable=SC2154  # options: of array.sbatch
  { [[ -z ${sweep-} || -e ${2%/*}/options ]] || printf '%s\0' "${options[@]}" >"${2%/*}/options"; } 2>/dev/null
  shift 2
  for one; do
    if [[ $one == "$name" ]]; then one=$kept_run name=$'\n'; fi
    taken+=("$one")
  done
}

ended_by=() why_stopped='' starts_not_run='' run_was_told=0 # of the last launch: see start_run, not_run and tells_of_signal
# start_run ARGUMENT...: `fourfold train ARGUMENT...` as one launch of this job; sets `outcome`, `preempted`, `bad_nodes` and
# `ended_by`, what it told `job end`, and `why_stopped`, and returns the run's code, as train_job. Where it is a restart inside the job, and no mesh fits
# on the nodes that are left: nothing is launched, `fits` is 0.
# shellcheck disable=SC2034  # for the scripts that source this
start_run() {
  local code=0 i answer errors lines overrides=() taken exit_file='' gone told_before=''
  in_peace "$FOURFOLD" job begin ${kept_run:+--kept-run-file "$kept_run"} ${no_next:+--no-next "$no_next"} \
    ${later_start:+--later-start} --tell-files "$@" || {
    code=$? outcome=stop
    if [[ $code == 85 ]]; then # it is not known which run: Slurm may say it by now, or later
      own_comment=$(deaf && comment_of "$own_number") && kept_run=$(kept_run_in "$own_comment") || kept_run=''
      if [[ -n $later_start && -n $kept_run ]]; then
        later_start=''
        start_run "$@"
        return
      fi
      outcome=again
    fi
    if [[ -n $(job_answer superseded <<<"$answer") ]]; then outcome=superseded; else not_run "$code"; fi
    return "$code"
  }
  later_start=''
  if [[ -n $times_not_run && $times_not_run != 0 ]]; then
    note_not_run "$own_number" 0
    times_not_run=0
  fi
  mapfile -t lines < <(job_answer start finished queue <<<"$answer") # "start", the number of tasks, arguments
  if [[ ${lines[0]-} == queue ]]; then
    fits=0
    return 0
  fi
  outcome=stop preempted=0 bad_nodes=''
  if [[ ${lines[0]-} != finished && ! ${lines[1]-} =~ ^(all|[0-9]+)$ ]]; then
    say "$FOURFOLD job begin does not say how to start; it says: $answer"
    return 70
  fi
  if [[ ${lines[0]} == finished ]]; then
    outcome=finished
    say "the run is finished: nothing to do"
    return 0
  fi
  for ((i = 2; i + 1 < ${#lines[@]}; i += 2)); do
    case ${lines[i]} in
      --set) overrides+=(--set "${lines[i + 1]}") ;;
      --exit-file) exit_file=${lines[i + 1]} ;;
      --node-local-dir) node_local_dir=${lines[i + 1]} ;;
      --run-file)
        take_run_file "${lines[i + 1]}" "${lines[i + 2]-}" "$@"
        set -- "${taken[@]}"
        ((++i))
        ;;
      *) break ;;
    esac
  done
  [[ -n $told_to_stop ]] || say "starting on ${SLURM_JOB_NODELIST-}, restart ${SLURM_RESTART_COUNT:-0}${FOURFOLD_LAUNCH:+, launch $FOURFOLD_LAUNCH inside the job}"
  local begun=$SECONDS log_before words
  log_before=$(log_bytes)
  { told_before=$(<"$exit_file"); } 2>/dev/null
  launch "${lines[1]}" train "$@" "${overrides[@]}" && code=0 || code=$?
  ended_by=(--launcher-code "$code")
  ! tells_of_signal "$told_before" || told_to_stop='a signal to the run' run_was_told=1
  [[ $code -eq 0 ]] || words=$(deaf && words_since "$log_before")
  [[ $was_launched == 1 ]] || ended_by=(--stopped-by "$told_to_stop")
  # No code of a rank's, and soon: the launcher itself may refuse to start anything. Its words are not told from the ranks' in
  # the log, so it is asked once more, for next to nothing. On fewer nodes than it was to use it refuses everything.
  if [[ $code -gt 0 && $code -lt 64 ]] && has_lost_nodes; then
    words=''
  elif [[ $code -eq 255 || ($code -gt 0 && $code -lt 64) ]] && [[ $((SECONDS - begun)) -lt 60 ]]; then
    ask srun --export=ALL ${FOURFOLD_MPI:+"--mpi=$FOURFOLD_MPI"} "${srun_options[@]}" --kill-on-bad-exit=1 --output=none "$FOURFOLD" version ||
      words+=$'\n'${errors:0:8000}
  fi
  [[ -z ${words-} ]] || ended_by+=(--launcher-words "$words" --memory-limit "$(deaf && memory_limit)")
  why_stopped=$(deaf && why_slurm_stops)
  [[ $why_stopped != preempted ]] || preempted=1
  ended_by+=(${why_stopped:+"--$why_stopped"})
  if [[ $code -ne 0 ]] && may_lack_node && gone=$(deaf && nodes_gone) && [[ -n $gone ]]; then ended_by+=(--nodes-gone "$gone"); fi
  note_end "$@" "${ended_by[@]}"
}

# tells_of_signal BEFORE: `exit_file`, which said BEFORE until this launch, says that a signal reached the ranks, who could not obey any
# more: a node had just failed.
tells_of_signal() {
  local now=''
  { now=$(<"$exit_file"); } 2>/dev/null
  [[ $now != "$1" && $now == *'"told_to_stop": true'* ]]
}

# train_job ARGUMENT...: `fourfold train ARGUMENT...`, and again inside this job as often as FOURFOLD_RESTARTS_INSIDE allows. Sets
# `outcome` to "again", "finished", "stop" or "superseded" (the chain has gone on without this job, which has to leave everything
# as it is), `preempted` to 1 if it was, `bad_nodes` to those that failed, with commas, and `node_local_dir` to where nodes keep steps. Returns the exit code of the run
# (docs/exit-codes.md), which exit.json knows better than srun.
# shellcheck disable=SC2034  # for the scripts that source this
train_job() {
  local code=0 now launches=0 fits=1 failed='' before
  outcome=stop preempted=0 bad_nodes='' node_local_dir=''
  while :; do
    start_run "$@" && now=0 || now=$?
    if [[ $fits == 0 ]]; then
      say "no mesh fits on the nodes that are left of this job"
      unset FOURFOLD_LAUNCH
      [[ $((--launches)) -eq 0 ]] || export FOURFOLD_LAUNCH=$launches
      break
    fi
    code=$now
    failed+=${bad_nodes:+${failed:+,}$bad_nodes}
    [[ $outcome == again && -z $starts_not_run && -z $later_start && ($code == 85 || $code == 86) ]] || break
    may_restart_inside "$code" || break
    take_nodes_left "$failed" || break
    export FOURFOLD_LAUNCH=$((++launches))
    start_guard "$SLURM_JOB_NODELIST"
  done
  trap '' TERM
  stop_guard
  # The end is noted by now, whatever else becomes of this script: what is found out about the next job is noted again.
  if declare -F before_end >/dev/null; then
    trap '' USR1 USR2 # the next job goes on whatever comes
    before="${next-} ${no_next-}"
    before_end
    # Of a start that could not begin there is no end to note.
    [[ $outcome != again || ${#ended_by[@]} -eq 0 || "${next-} ${no_next-}" == "$before" ]] || note_end "$@" "${ended_by[@]}" || :
  fi
  bad_nodes=$failed
  return "$code"
}

# wants_requeue CODE: whether a job whose run has ended with this code goes back into the queue by itself.
wants_requeue() {
  [[ $outcome == again ]] || return
  case ${FOURFOLD_REQUEUE-} in
    1) return 0 ;;
    0) return 1 ;;
    *) [[ $preempted == 1 || ($run_was_told == 0 && ($1 == 85 || $1 == 86)) ]] ;; # who asked it to stop has the last word
  esac
}

# requeue: this job again, when there is room; not if Slurm has started it again meanwhile, and this script is what a node
# that it has given up still runs, and not if somebody has cancelled it. Nothing of the script runs for long after it: Slurm
# ends it.
requeue() {
  local now left_out=''
  now=$(deaf && facts_of "$SLURM_JOB_ID") || now=''
  trap '' USR1 USR2
  if [[ $run_was_told == 1 && ${FOURFOLD_REQUEUE-} != 1 && $preempted != 1 ]]; then
    say "${told_to_stop:-a signal} came meanwhile: the job is not put back into the queue"
    return
  elif [[ -z $now ]]; then
    say "Slurm does not say how this job stands: asking for its requeue all the same"
  elif [[ $(field Restarts "$now") != "${SLURM_RESTART_COUNT:-0}" ]]; then
    say "Slurm has put the job back into the queue by itself"
    return
  elif [[ $(field JobState "$now") != RUNNING && $why_stopped != time-limit ]] && [[ -z $deadline || $(date +%s) -lt $deadline ]]; then
    say "the job was cancelled: it is not put back into the queue"
    return
  fi
  [[ -z $starts_not_run ]] || note_not_run "$own_number" "$starts_not_run"
  # Found out before: the requeue sends TERM to what this script has asked.
  [[ -z $now ]] || find_left_out "$own_number" "$now" "$bad_nodes"
  scontrol requeue "$own_number" && leave_out_found "$own_number"
}
