# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# fourfold as a step of the job, and the signals that come meanwhile; job.bash sources it.

# shellcheck disable=SC2034  # for restart_inside.bash
# 1: this script was told to end; the job ends sooner than the run knows; srun was called; Slurm has warned of the end
is_ending=0 end_was_moved=0 was_launched=0 was_warned=0

# pass_on SIGNAL: one that came to this script, to the run.
pass_on() {
  say "SIG$1: passed on"
  told_to_stop=SIG$1 run_was_told=1 # should the run have failed just before
  signal_run "$1"
}

# keep_late SIGNAL: one for a run that has ended meanwhile: who asks it to stop has the last word (wants_requeue).
keep_late() {
  say "SIG$1: the run has ended already"
  told_to_stop=SIG$1 run_was_told=1
}

# signal_run SIGNAL: to all steps, and again for a minute and a half: tasks that srun is just starting, or that wait for a prolog, get none.
# The run takes several for one.
# shellcheck disable=SC2154  # own_number: of job.bash
signal_run() {
  scancel --quiet --signal="$1" "$own_number" 2>/dev/null
  (
    trap '' TERM USR1 USR2
    for pause in 3 3 6 12 24 48; do
      sleep "$pause"
      kill -0 $$ 2>/dev/null && [[ $(field JobState "$(facts_of "$own_number")") == RUNNING ]] || exit
      scancel --quiet --signal="$1" "$own_number"
    done
  ) >/dev/null 2>&1 &
  disown
}

# take_moved_end: what see_to_end has told.
take_moved_end() {
  local job restarts end
  [[ -n ${end_file-} && -r $end_file ]] && read -r job restarts end <"$end_file" || return 0
  [[ $job != "$SLURM_JOB_ID" || $restarts != "${SLURM_RESTART_COUNT:-0}" || ! $end =~ ^[0-9]{1,12}$ ]] || deadline=$end
}

# forget_moved_end [START]: removes `end_file`, which a script that was killed may have left; where START is given ("JOB RESTARTS"), only one of
# that start. Fails where there is a file that says something else: it is somebody's.
forget_moved_end() {
  local said
  [[ -L $end_file || -L $end_file.new ]] && return 1
  if [[ -e $end_file ]]; then
    said=$(head -c 200 -- "$end_file" 2>/dev/null)
    [[ $said =~ ^[^[:space:]]+\ [0-9]+\ [0-9]+$ && (-z ${1-} || ${said% *} == "$1") ]] || return
  fi
  rm -f -- "$end_file" "$end_file.new" 2>/dev/null
}

# take_term: Slurm sends TERM to the steps as well as to this script; whoever sends it to the script alone (scancel --batch) means the run.
take_term() {
  say 'SIGTERM: waiting for fourfold to save'
  [[ $(field JobState "$(facts_of "$own_number")") != RUNNING ]] || signal_run TERM
}

# end_of_job: when it ends by now, in seconds since 1970; fails where Slurm does not say.
end_of_job() {
  local end
  end=$(field EndTime "$(facts_of "$own_number")") && [[ $end == 20* ]] && date --date="$end" +%s
}

# see_to_end FILE: an end that somebody moves later is told by this file to the run, which looks for it when its end is near, and to this
# script, until that is gone.
see_to_end() {
  local waited=0 known=$deadline end never looked=$EPOCHSECONDS
  trap '' TERM USR1 USR2
  exec {never}<> <(:)
  while ! read -r -t 5 -u "$never" _ && kill -0 $$ 2>/dev/null; do
    # Slurm moves the end of a job that it has suspended by as long as that was.
    [[ $((EPOCHSECONDS - looked)) -lt 30 ]] || waited=$look_at_end_s
    looked=$EPOCHSECONDS
    ((waited += 5))
    [[ $waited -ge $look_at_end_s ]] || continue
    waited=0
    end=$(end_of_job) || end=0
    looked=$EPOCHSECONDS # a controller that answers late is no suspension
    [[ $end -gt $((known + 5)) ]] || continue
    known=$end
    say "the job ends at $(date --date="@$end" '+%F %T'), later than it would have"
    { echo "$SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0} $end" >"$1.new" && mv -f -- "$1.new" "$1"; } 2>/dev/null
  done
}
look_at_end_s=$(seconds_in FOURFOLD_LOOK_AT_END_S 300)

# is_end_known: SIGUSR2 is Slurm's warning of the job's end (--signal=B:USR2@120), which it gives up to a minute early, and the run
# knows that end and leaves as much time as its saves take. An end that somebody has moved nearer meanwhile it does not know: sets
# `end_was_moved`. Slurm warns once: another one is a person's.
is_end_known() {
  local now end most_early_s=190
  now=$(date +%s)
  take_moved_end
  [[ $was_warned == 0 && -n $deadline && $deadline -gt $now ]] || return 1 # in a trap a bare one returns what was before it
  end=$(end_of_job) || end=$deadline
  [[ $((end - now)) -le $most_early_s ]] || return 1
  if [[ $end -lt $((deadline - 5)) ]]; then
    say "the job ends at $(date --date="@$end" +%T), earlier than it would have"
    end_was_moved=1
    return 1
  fi
  was_warned=1
  say 'SIGUSR2: the job ends soon, as the run knows (another one would stop it now)'
}

# wait_for_step PROCESS PIPE: until srun has ended, whose code comes through the pipe; sets `written` to it. Where a restart inside the
# job may follow, srun is not waited for when the run has told its end in `exit_file`, and is still there five seconds later: it would
# wait for a node that is gone until the cluster's SlurmdTimeout or KillWait is over, which may be minutes.
wait_for_step() {
  local told_at='' before='' now looks=0
  if [[ -z ${restarts_inside-} || -z ${exit_file-} ]]; then
    until wait "$1" && code=0 || code=$?; [[ $code -le 128 ]] || ! kill -0 "$1" 2>/dev/null; do :; done
    return "$code"
  fi
  { before=$(<"$exit_file"); } 2>/dev/null
  until read -r -t 1 -u "$2" written || ! kill -0 "$1" 2>/dev/null; do
    [[ $((++looks % 30)) -ne 0 ]] || see_to_guard
    if [[ -z $told_at ]]; then
      { now=$(<"$exit_file"); } 2>/dev/null
      [[ $now == "$before" || ! $now =~ \"code\":\ (85|86), ]] || told_at=$SECONDS
    elif [[ $((SECONDS - told_at)) -ge 5 ]]; then
      give_up_step "$1"
      told_at=$((SECONDS + 5))
    fi
  done
  wait "$1"
}

# launch COUNT ARGUMENT...: fourfold on that many tasks, or on all of the job ("all"). Returns when it has ended, whatever
# signals come meanwhile: Slurm sends TERM to the steps and to this script, and what fourfold then saves must not be cut off.
# A signal that came before ends it with 75, and nothing is launched: `was_launched` is 0.
# A step of which one task fails is ended: the others would wait for that task until the time limit (kill_on_bad_exit=0: not).
launch() {
  was_launched=0
  local count=$1 code=0 said log use='' chosen='' written='' per_node=${FOURFOLD_TASKS_PER_NODE:-${SLURM_NTASKS_PER_NODE-}}
  shift
  srun_options=()
  [[ -z ${FOURFOLD_TASKS_PER_NODE-} ]] || srun_options=(--ntasks-per-node="$per_node")
  [[ $count != all || -z ${FOURFOLD_TASKS_PER_NODE-} ]] || count=$((per_node * SLURM_JOB_NUM_NODES))
  if [[ $count != all ]]; then
    srun_options+=(--ntasks="$count")
    # As many nodes as they fill, where each takes as many as the others.
    [[ -n $per_node || ${SLURM_TASKS_PER_NODE:-1} == *,* ]] ||
      per_node=$(((${SLURM_NTASKS:-$SLURM_JOB_NUM_NODES} - 1) / SLURM_JOB_NUM_NODES + 1))
    if [[ -n $per_node ]]; then
      use=$(((count - 1) / per_node + 1))
      srun_options+=(--nodes="$use")
      if [[ -n ${restarts_inside-} && -n ${node_local_dir-} && ${#nodes_used[@]} -gt 0 && $use -lt $SLURM_JOB_NUM_NODES ]]; then
        chosen=$(deaf && nodes_to_use "$use")
        srun_options+=(${chosen:+--nodelist="$chosen"})
      fi
    fi
  fi
  [[ -z ${restarts_inside-} ]] || mapfile -t nodes_used < <(hosts_in_order "${chosen:-$SLURM_JOB_NODELIST}" | head -n "${use:-$SLURM_JOB_NUM_NODES}")
  # What is left of a launch on a node that is gone counts as a step that still has its CPUs and memory, unless it was one that overlaps.
  [[ -z ${restarts_inside-} ]] || srun_options+=(--overlap ${nodes_left_out:+--exclude="$nodes_left_out"})
  local -x FOURFOLD_DEADLINE=$deadline FOURFOLD_WARNING_S=0 # no step gets Slurm's warning: see is_end_known
  trap 'is_ending=1; take_term' TERM
  trap 'pass_on USR1' USR1
  trap 'is_end_known || pass_on USR2' USR2
  [[ $told_to_stop != SIGUSR2 ]] || ! is_end_known || told_to_stop=''
  if [[ -n $told_to_stop ]]; then # from here on it would be passed on
    trap '' TERM USR1 USR2
    say "$told_to_stop: the run is not launched"
    return 75
  fi
  local end_file=${exit_file:+${exit_file%/*}/.job-end} seeing_to_end=''
  if [[ -n $end_file ]] && forget_moved_end; then
    if [[ -n $deadline && -z $deadline_was_given && -n ${SLURM_JOB_ID-} ]]; then
      see_to_end "$end_file" &
      seeing_to_end=$!
      disown "$seeing_to_end"
    fi
  fi
  was_launched=1
  # A signal ends `wait` before the step has ended, and if srun ends at that moment its code is lost: a process that no
  # signal ends writes it into a pipe, which has no name that could stay behind.
  exec {said}<> <(:)
  {
    trap : TERM USR1 USR2
    exec {log}>&2 2>/dev/null # bash would tell of an srun that give_up_step kills
    # What this script has set has to reach the ranks, also where jobs are submitted with --export=NONE.
    srun --export=ALL ${FOURFOLD_MPI:+"--mpi=$FOURFOLD_MPI"} "${srun_options[@]}" --kill-on-bad-exit="${kill_on_bad_exit:-1}" --wait=60 --unbuffered "$FOURFOLD" "$@" 2>&"$log" {said}>&- {log}>&-
    code=$?
    echo "$code" >&"$said"
    exit "$code"
  } &
  local step=$!
  wait_for_step "$step" "$said" && code=0 || code=$?
  if [[ -n $seeing_to_end ]]; then
    kill -KILL "$seeing_to_end" 2>/dev/null
    take_moved_end
    forget_moved_end "$SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0}"
  fi
  # Slurm sends TERM again when a node has failed, or the job's time is over: how the run ended is noted all the same. What may be
  # launched again keeps it. Whoever asks the run to stop by now asks that it is not started again.
  if may_restart_inside "$code"; then keep_signals; else trap '' TERM; fi
  trap 'keep_late USR1' USR1
  trap 'is_end_known || keep_late USR2' USR2
  [[ -n $written ]] || ! read -r -t 1 -u "$said" written || :
  code=${written:-$code}
  exec {said}>&-
  return "$code"
}
