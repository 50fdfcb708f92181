# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Which nodes a job leaves out. job.bash sources this, and `fourfold submit` copies it into the script that it writes: a node on which
# fourfold's folder is not mounted can read nothing else of it.

# In that script; job.bash and own_job.bash have their own.
declare -F say >/dev/null || say() { echo "[job ${SLURM_JOB_ID:-none}] $*"; }
declare -F ask >/dev/null || ask() { answer=$(timeout 60 "$@" 2>/dev/null); }

# field NAME FACTS: its value; nothing for what is not set.
field() { sed -n "s|^$1=||p" <<<"$2" | grep -vxE '\(null\)|N/A|Unknown|None' | head -n 1; }

# hosts_in_order LIST: the names in "n[9-10],n7", one on a line, as Slurm has them: ranks are dealt out in this order.
hosts_in_order() {
  local answer errors
  ask scontrol show hostnames "$1" && grep -xE '[A-Za-z0-9][A-Za-z0-9._-]*' <<<"$answer" | awk '!seen[$0]++'
}
# hosts_of LIST: the same, sorted for comm(1).
hosts_of() { hosts_in_order "$1" | sort; }

# Where a job's comment counts the starts in a row, of this job or before it, of which the node could not run fourfold.
not_run_mark=fourfold-not-run=
count_in() { sed -nE "s/^(.* )?$not_run_mark([0-9])( .*)?\$/\2/p" <<<"$1"; }
# with_count COMMENT COUNT
with_count() {
  local rest
  rest=$(sed -E "s/(^| )${not_run_mark}[0-9]+//; s/^ *//; s/ *\$//" <<<"$1")
  [[ $2 == 0 ]] && echo "$rest" || echo "$not_run_mark$2${rest:+ $rest}"
}

# nodes_that_work FACTS: those on which Slurm may start the job of these facts, now or when they are free: of its partition,
# its reservation, and with its feature. (A "*" says that a node does not answer.)
nodes_that_work() {
  local feature reservation those answer='' errors=''
  feature=$(field Features "$1") reservation=$(field Reservation "$1")
  ask sinfo --noheader --Node --partition="$(field Partition "$1")" --format='%N %T %f' || say "sinfo failed: $errors" >&2
  those=$(awk -v feature="$feature" 'NF == 3 && $2 ~ /^(idle|mixed|allocated|completing|planned|reserved)[^*]*$/ &&
    (feature == "" || ("," $3 ",") ~ ("," feature ",")) { print $1 }' <<<"$answer" | sort -u)
  if [[ -n $reservation ]]; then
    ask scontrol --oneliner show reservation "$reservation" || answer=''
    comm -12 <(echo "$those") <(hosts_of "$(sed -n 's/.*\<Nodes=\([^ ]*\).*/\1/p' <<<"$answer")")
  else
    echo "$those"
  fi
}

# find_left_out JOB FACTS NODES: sets `left_out` to NODES and those that JOB leaves out already, if it has not asked for them by
# name and there are enough others; else it would wait for ever, and Slurm itself starts nothing on a node that it knows to be down.
find_left_out() {
  local job=$1 nodes=$3 needed=${FOURFOLD_NODES:-${nodes_of_job:-$SLURM_JOB_NUM_NODES}} before named
  left_out=''
  [[ -n $nodes ]] || return 0
  before=$(field ExcNodeList "$2")
  nodes=${before:+$before,}$nodes
  named=$(field ReqNodeList "$2")
  if [[ -n $named && -n $(comm -12 <(hosts_of "$named") <(hosts_of "$nodes")) ]]; then
    say "would leave out $nodes, but job $job asks for nodes by name (--nodelist=$named)"
  elif [[ $(field Features "$2") == *[\&\|\*\[\(\!]* ]]; then
    say "would leave out $nodes, but which others may be had under --constraint=$(field Features "$2") is not known"
  elif [[ $(comm -23 <(nodes_that_work "$2") <(hosts_of "$nodes") | grep -c .) -lt ${needed%%-*} ]]; then
    say "would leave out $nodes, but there are too few others"
  else
    left_out=$nodes
  fi
}

# leave_out_found JOB: `left_out`. Not through `ask`: the TERM of a requeue would end `timeout`.
leave_out_found() { [[ -z $left_out ]] || { scontrol update "JobId=$1" "ExcNodeList=$left_out" && say "job $1 leaves out $left_out"; }; }

# needs PATH...: they are there, now or soon: a mount on demand, an installation that is just replaced. Else this job goes back into the
# queue, and leaves this node out.
needs() {
  local pause path missing=() signal
  # Kept for job.bash, until bash has become that.
  # shellcheck disable=SC2064  # of each its own name
  for signal in TERM USR1 USR2; do trap "export FOURFOLD_TOLD_TO_STOP=SIG$signal" "$signal"; done
  for pause in 0 2 10; do
    sleep "$pause"
    ls -d -- "$@" >/dev/null 2>&1 && return
  done
  for path; do [[ -e $path ]] || missing+=("$path"); done
  say "${SLURMD_NODENAME:-this node} does not have $(printf '%q ' "${missing[@]}")(a file system that is not mounted?)"
  trap '' TERM USR1 USR2 # of the requeue
  [[ -z ${SLURM_JOB_ID-} || -z ${SLURMD_NODENAME-} || ${FOURFOLD_TOLD_TO_STOP-} == SIGTERM ]] || go_elsewhere "$SLURM_JOB_ID" "$SLURMD_NODENAME"
  exit 78
}

# go_elsewhere JOB NODE: unless the two starts before this one did the same.
go_elsewhere() {
  local answer='' errors facts comment count left_out requeue=''
  ask scontrol show job "$1" || return
  comment=$(sed -n 's/^ *Comment=//p' <<<"$answer" | head -n 1)
  facts=$(grep -vE '^ *(JobId|Command|WorkDir|Std(Err|In|Out)|(Admin|System)?Comment)=' <<<"$answer" | tr -s ' ' '\n')
  count=$(count_in "$comment")
  [[ ${count:-0} -lt 2 ]] || { say "the same of the two starts before this one: see to it, then submit anew" && return; }
  find_left_out "$1" "$facts" "$2"
  # The jobs of a chain are --no-requeue until then, and from their begin on.
  [[ -z ${FOURFOLD_SCRIPT-}${FOURFOLD_CHAIN-} ]] || requeue=Requeue=1
  scontrol update "JobId=$1" ${requeue:+"$requeue"} "Comment=$(with_count "$comment" $((count + 1)))" && scontrol requeue "$1" || return
  leave_out_found "$1"
  say "goes back into the queue"
}
