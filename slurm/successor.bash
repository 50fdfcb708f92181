# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The next job of a chain; chain.sbatch sources it. That it is there, that it still is, and on which nodes it begins.
# shellcheck disable=SC2154  # link, most, by_script, successor, own_script: of chain.sbatch

node_count_at_begin=${SLURM_JOB_NUM_NODES-} tasks_at_begin=${SLURM_NTASKS-} # a restart inside the job makes them fewer
next='' cluster='' told_next='' no_next='' head_of_next='' may_go_on=0 seeing=''
again_s=$(seconds_in FOURFOLD_ASK_AGAIN_S 600) look_s=$(seconds_in FOURFOLD_LOOK_AGAIN_S 60) settle_s=$(seconds_in FOURFOLD_SETTLE_S 15)
prefer_s=$(seconds_in FOURFOLD_PREFER_S 60)
cancelled='this job was cancelled before another one was queued'

# ask_sbatch OPTION...: another job of this chain, after this one, with these options of sbatch beside its own; `answer` and `errors` as ask_for.
ask_sbatch() {
  [[ ${successor[0]} == bash ]] || set -- sbatch --parsable --export=ALL "${own_options[@]}" "$@"
  # shellcheck disable=SC2154  # later_start, told_next: of job.bash
  FOURFOLD_LATER_START=$later_start FOURFOLD_PREVIOUS=$SLURM_JOB_ID FOURFOLD_LINK=$((link + 1)) FOURFOLD_EXCLUDE=${exclude-} FOURFOLD_MOST_STARTS=$most FOURFOLD_SCRIPT=${own_script-} ask_for $((5 * ask_s)) "$@" "${successor[@]}"
}

# take_own_options: how the job of a chain was submitted that no script of its own can submit again: what Slurm says of it.
# shellcheck disable=SC2154  # own_facts: of job.bash; own_arguments: of chain.sbatch
take_own_options() {
  own_facts=${own_facts:-$(facts_of "$SLURM_JOB_ID")} || return
  mapfile -t own_options < <(options_of "$own_facts")
  [[ -z ${FOURFOLD_TASKS_PER_NODE-} && -z ${SLURM_NTASKS_PER_NODE-} && -n $tasks_at_begin ]] && own_options+=(--ntasks="$tasks_at_begin")
  # The first job's, not what failed meanwhile and was left out once.
  exclude=${FOURFOLD_EXCLUDE-$(field ExcNodeList "$own_facts")}
  own_options+=(--nodes="${FOURFOLD_NODES:-$node_count_at_begin}" --job-name="$SLURM_JOB_NAME" ${exclude:+--exclude="$exclude"})
  successor=("$FOURFOLD_SLURM/chain.sbatch" "${own_arguments[@]}")
}

# submit_next: the next job; sets `next` and `cluster`, or `no_next`: why there is none. sbatch waits for a controller that is busy.
submit_next() {
  local answer errors script code=0
  if [[ $by_script == 1 ]]; then
    # Where the file is gone, or came through a pipe, Slurm still has it.
    script=$(command_of "$SLURM_JOB_ID")
    if [[ -r $script ]]; then
      successor=("$script")
    else
      # shellcheck disable=SC2016 # expanded by the shell inside
      successor=(bash -c 'script=$(scontrol write batch_script "$1" -) && [[ $script == "#!"* ]] && sbatch --parsable --export=ALL <<<"$script"'
        sbatch "$SLURM_JOB_ID")
    fi
  fi
  if [[ ${#successor[@]} -eq 0 ]] && ! take_own_options; then
    no_next='how this job was submitted is not known (Slurm does not answer)'
    return 1
  fi
  ask_sbatch || code=$?
  [[ -z $errors ]] || say "sbatch says: ${errors:0:2000}"
  read -r next cluster < <(job_in "$answer")
  if [[ -z $next ]] && may_be_submitted "$code" "$errors"; then
    next=$(find_next) || {
      no_next='whether sbatch has made a job is not known: Slurm does not answer'
      return 0 # as below
    }
  fi
  if [[ -n $next ]]; then
    no_next='' head_of_next=$([[ -n $cluster ]] || head_of "$next")
  elif [[ $code -ne 0 ]]; then
    errors=${errors//$'\n'/ }
    no_next="sbatch ended with code $code${errors:+: ${errors:0:300}}"
  else
    no_next='sbatch does not say which job it is'
    say "sbatch does not say which job the successor is: should this one end for good, it is not taken out of the queue, but refused"
    return 0 # a second one would be one too many
  fi
  [[ -n $next ]]
}

# may_be_submitted CODE ERRORS: whether sbatch, which has failed so, may have made a job all the same: the controller's answer did not come.
# As `fourfold submit` knows them (cluster_facts.cpp).
may_be_submitted() {
  [[ $1 -eq 137 || $1 -eq 141 || $1 -eq 143 || ($1 -ne 0 && $2 =~ timed\ out|Zero\ Bytes\ were|receive\ failure|Unexpected\ message|Connection\ reset|Transport\ endpoint) ]]
}

# find_next: the job of this user's that waits, and has this one's name and command, and a later number; nothing where there is none. Fails
# where Slurm does not say.
find_next() {
  local answer='' errors='' until=$((SECONDS + ask_s)) number
  until ask squeue --noheader --me --states=PENDING,RUNNING --format='%A|%t|%j|%o'; do
    [[ $SECONDS -lt $until ]] || return 1
    sleep 2
  done
  number=$(awk -F '|' -v own="$SLURM_JOB_ID" '
    { line = $0; sub(/^[^|]*\|[^|]*\|/, "", line); name[$1] = line; waits[$1] = $2 == "PD" }
    END { for (one in name) if (waits[one] && one + 0 > own + 0 && name[one] == name[own]) print one }' <<<"$answer" | sort -n | head -n 1)
  [[ -z $number ]] || say "job $number is there all the same" >&2
  echo "$number"
}

# seconds_to_forget: after its end Slurm forgets a job (MinJobAge).
seconds_to_forget() {
  local answer='' errors
  ask scontrol show config
  answer=$(sed -n 's/^MinJobAge *= *\([0-9]*\) sec$/\1/p' <<<"$answer")
  echo "${answer:-300}"
}

# is_next_gone: whether Slurm has forgotten the next job.
is_next_gone() { [[ -n $next && -z $cluster ]] && is_gone "$next" "$head_of_next"; }

# see_to_next FROM TO: looks once whether the next job is still there, and asks for one now and then where there is none, until a line
# comes through TO, or the script is gone. What becomes of the next job it writes into FROM, a record on a line: `next`, `cluster`,
# `head_of_next`, `no_next`, and whether another one may be submitted, with an ASCII 31 between them.
see_to_next() {
  local waited=0 forgets_s told='' found may=1
  trap '' TERM USR1 USR2
  # One that was cancelled Slurm forgets, too, after MinJobAge.
  forgets_s=$(seconds_to_forget)
  [[ $look_s -lt $((forgets_s * 2 / 3)) ]] || look_s=$((forgets_s * 2 / 3))
  until read -r -t 5 -u "$2" _; do
    kill -0 $$ 2>/dev/null || return
    ((waited += 5))
    [[ $waited -ge $([[ -n $next ]] && echo "$look_s" || echo "$again_s") ]] || continue
    if [[ -n $next ]]; then
      is_next_gone || return 0
      say "Slurm does not know job $next any more, which was to go on: submitting another"
      next=''
    fi
    waited=0
    if submit_next && [[ -z $next ]]; then may=0; fi # which job it is nobody knows
    # What nobody reads before the end fills the pipe one day.
    printf -v found '%s\x1f%s\x1f%s\x1f%s\x1f%s' "$next" "$cluster" "$head_of_next" "${no_next//[[:cntrl:]]/ }" "$may"
    [[ $found == "$told" ]] || printf '%s\n' "$found" >&"$1"
    told=$found
    [[ $may == 1 ]] || return 0
  done
}

# before_end: unless no other start makes sense, there is a next job before this one ends, if there can be one; one that somebody has
# cancelled is not replaced. Reads `outcome`.
before_end() {
  local i
  if [[ -n $seeing ]]; then
    echo ended >&"$to_it"
    until wait "$seeing" || ! kill -0 "$seeing" 2>/dev/null; do :; done
    while read -t 0 -u "$from_it" && IFS=$'\x1f' read -r -t 1 -u "$from_it" next cluster head_of_next no_next may_go_on; do :; done
    seeing=''
  fi
  [[ $outcome == again ]] || return 0
  if [[ -n $next && -z $cluster ]]; then
    case $(field JobState "$(facts_of "$next")") in
      CANCELLED*) no_next="job $next, which was to go on, was cancelled" next='' may_go_on=0 ;;
    esac
  fi
  if is_next_gone; then
    no_next="Slurm does not know job $next any more, which was to go on"
    # Slurm forgets those that were cancelled, too.
    if [[ $SECONDS -ge $(($(seconds_to_forget) * 4 / 5)) ]]; then may_go_on=0; else say "$no_next: submitting another" && may_go_on=1; fi
    next=''
  fi
  if [[ -z $next && $may_go_on == 1 ]] && is_cancelled "$SLURM_JOB_ID"; then
    may_go_on=0 no_next=$cancelled
  fi
  if [[ -z $next && $may_go_on == 1 ]]; then
    for i in 1 2 3; do
      submit_next && break
      [[ $i == 3 ]] || sleep 3
    done
  fi
  [[ -z $next || $next == "$told_next" || -n $cluster || -z $kept_run ]] || tell_next "$kept_run"
}

# begin_later JOB SECONDS: it begins no sooner than so long after now, or than its user has told.
begin_later() {
  local answer errors begin
  begin=$(field StartTime "$(facts_of "$1")")
  [[ $begin != 20* || $(date --date="$begin" +%s) -le $(($(date +%s) + $2)) || $1 == "${delayed-}" ]] || return 0
  delayed=$1 # by this script: what it sets next may be sooner
  ask scontrol update "JobId=$1" "StartTime=now+$2" || say "job $1 could not be told to wait for the nodes of this one ($errors)"
}

# give_up_given JOB: that of the two jobs which go on with a run (prefer_survivors) that waits for the end of this one. This one has another next
# job, or is the last; where it could submit none, that is its next one.
give_up_given() {
  local facts
  [[ -n $1 ]] && facts=$(facts_of "$1") && [[ $(field JobState "$facts") == PENDING && $(head_of "$1") == "JobId=$1 JobName=$SLURM_JOB_NAME" ]] ||
    return 0
  if [[ -n $next || $may_go_on == 0 ]]; then
    scancel "$1"
  else
    next=$1 head_of_next="JobId=$1 JobName=$SLURM_JOB_NAME" no_next='' may_go_on=0
    say "job $next goes on instead"
  fi
}

# prefer_survivors: when nodes of this job have failed and the others keep steps of the run (checkpoint.node_local_dir), a job that asks for
# these begins before the next one, if they are free soon: another one of the same, of which Slurm lets go when FOURFOLD_PREFER_S is over
# (--deadline). The next job waits for its end; once it has begun, it submits one of its own, and cancels that (give_up_given): the jobs of
# a chain begin in the order of their numbers. Sets `next` to it. Fails where there is no such job.
prefer_survivors() {
  local answer errors='' facts survivors other limit_s bad
  [[ -n $bad_nodes && -n $node_local_dir && $prefer_s != 0 && -z $cluster && ${#successor[@]} -gt 0 && ${successor[0]} != bash ]] || return
  [[ -z $(field ReqNodeList "$own_facts") ]] && limit_s=$(seconds_of_limit "$(field TimeLimit "$own_facts")") || return
  # One that its user holds, or has begin later, waits for that.
  facts=$(facts_of "$next") && [[ $(field Reason "$facts") != JobHeld* && $(field Priority "$facts") != 0 ]] || return
  [[ $(field StartTime "$facts") != 20* ]] || return
  bad=$(field ExcNodeList "$facts")
  survivors=$(comm -23 <(hosts_of "$nodes_at_begin") <(hosts_of "${bad:-$bad_nodes}") | paste -sd, -)
  [[ -n $survivors ]] || return
  # Until it is told to wait for the other one.
  begin_later "$next" $((settle_s + prefer_s + 10))
  FOURFOLD_NEXT=$next ask_sbatch --dependency="afterany:$SLURM_JOB_ID" --begin="now+$settle_s" \
    --deadline="now+$((settle_s + prefer_s + limit_s))" --nodelist="$survivors" --exclude="${bad:-$bad_nodes}"
  other=$(job_in "$answer")
  if [[ -z $other ]]; then
    say "no job could be submitted for the nodes that are left (${errors:0:300})"
    begin_later "$next" "$settle_s"
    return
  fi
  if ask scontrol update "JobId=$next" "Dependency=afterany:$other"; then
    begin_later "$next" "$settle_s"
  else
    say "job $next could not be told to wait for job $other ($errors)"
  fi
  [[ -z $kept_run ]] || note_run "$other" "$kept_run"
  say "job $other goes on on $survivors, which keep steps of the run, if these are free within $prefer_s s; else job $next goes on"
  next=$other head_of_next=$(head_of "$other")
}
