# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# `fourfold submit` copies these functions into the script that it writes: a node on which fourfold's folder is not mounted can read
# nothing else of it. They do in short what not_run (job.bash) and leave_out (nodes.bash) do where that can be read.

# needs PATH...: they are there, now or soon: a mount on demand, an installation that is just replaced. Else this job goes back into the
# queue, and leaves this node out.
needs() {
  local pause path missing=()
  for pause in 0 2 10; do
    sleep "$pause"
    ls -d -- "$@" >/dev/null 2>&1 && return
  done
  for path; do [[ -e $path ]] || missing+=("$path"); done
  echo "[job ${SLURM_JOB_ID:-none}] ${SLURMD_NODENAME:-this node} does not have $(printf '%q ' "${missing[@]}")(a file system that is not mounted?)" >&2
  trap '' TERM # of the requeue
  [[ -z ${SLURM_JOB_ID-} || -z ${SLURMD_NODENAME-} ]] || go_elsewhere "$SLURM_JOB_ID" "$SLURMD_NODENAME"
  exit 78
}

# go_elsewhere JOB NODE: unless the two starts before this one did the same, which the job's comment counts.
go_elsewhere() {
  local facts comment count left_out=''
  facts=$(timeout 60 scontrol show job "$1") || return
  comment=$(sed -n 's/^ *Comment=//p' <<<"$facts" | head -n 1)
  count=$(sed -nE 's/^(.* )?fourfold-not-run=([0-9]).*/\2/p' <<<"$comment")
  if [[ ${count:-0} -ge 2 ]]; then
    echo "[job $1] the same of the two starts before this one: see to it, then submit anew" >&2
    return
  fi
  left_out=$(nodes_to_leave_out "$facts" "$2")
  comment="fourfold-not-run=$((${count:-0} + 1)) $(sed -E 's/(^| )fourfold-not-run=[0-9]+//; s/^ *//; s/ *$//' <<<"$comment")"
  # Not by `timeout`, which the TERM of the requeue would end.
  scontrol update "JobId=$1" Requeue=1 "Comment=$comment" && scontrol requeue "$1" || return
  [[ -z $left_out ]] || scontrol update "JobId=$1" "ExcNodeList=$left_out"
  echo "[job $1] goes back into the queue${left_out:+, and leaves out $left_out}" >&2
}

# nodes_to_leave_out FACTS NODE: NODE, and those that the job leaves out already, with commas; nothing where Slurm may not choose among the nodes of the
# partition, or has too few others: the job would wait for ever.
nodes_to_leave_out() {
  local nodes others needed=${FOURFOLD_NODES:-$SLURM_JOB_NUM_NODES}
  ! grep -qE '(^| )(ReqNodeList|Features|Reservation)=[^( ]' <<<"$1" || return
  nodes=$(sed -nE 's/.* ExcNodeList=([^( ]+).*/\1,/p' <<<"$1")$2
  others=$(comm -23 <(timeout 60 sinfo --noheader --Node --responding --partition="$SLURM_JOB_PARTITION" --states=idle,alloc,mix,comp --format=%N | sort -u) \
    <(timeout 60 scontrol show hostnames "$nodes" | sort -u) | grep -c .)
  [[ $others -lt ${needed%%-*} ]] || echo "$nodes"
}
