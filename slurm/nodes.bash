# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Nodes that failed, and those that are left; job.bash sources it.

# shellcheck disable=SC2034  # for successor.bash
nodes_of_job=${SLURM_JOB_NUM_NODES:-1} nodes_at_begin=${SLURM_JOB_NODELIST-} # which a restart inside the job changes

# nodes_of HOSTS: the nodes that the job began with that these hosts (with commas, as they call themselves) are to Slurm, with commas.
nodes_of() {
  local line name host bad answer='' errors found=()
  ask scontrol --oneliner show node "$nodes_at_begin"
  while read -r line; do
    name=$(sed -n 's/.*\<NodeName=\([^ ]*\).*/\1/p' <<<"$line") host=$(sed -n 's/.*\<NodeHostName=\([^ ]*\).*/\1/p' <<<"$line")
    [[ -n $name ]] || continue
    for bad in ${1//,/ }; do
      [[ $bad != "$name" && $bad != "$host" && ${bad%%.*} != "${name%%.*}" && ${bad%%.*} != "${host%%.*}" ]] || found+=("$name")
    done
  done <<<"$answer"
  [[ ${#found[@]} -gt 0 ]] || say "which nodes of this job $1 are is not known: none is left out" >&2
  (IFS=, && echo "${found[*]}")
}

# may_lack_node: the run has told in `exit_file` that a rank has left without a word, and blames no node for that; or it still says
# that it runs.
# shellcheck disable=SC2154  # exit_file: of start_run
may_lack_node() {
  local told
  { told=$(tr -d ' \n' <"$exit_file"); } 2>/dev/null
  [[ $told == *'"bad_nodes":[]'* && $told =~ \"code\":(86|null), ]]
}

# nodes_gone: those of this job that Slurm has given up, or that srun does not reach, with commas: with one rank on each, nobody in the
# run can tell whether its node has ended with it.
nodes_gone() {
  local answer='' errors='' found
  [[ ${SLURM_JOB_NUM_NODES:-1} -gt 1 ]] || return 0
  ask scontrol --oneliner show node "$SLURM_JOB_NODELIST"
  found=$(sed -nE 's/^NodeName=([^ ]*) .* State=(DOWN|[A-Z+]*(\*|NOT_RESPONDING)).*/\1/p' <<<"$answer")
  if [[ -z $found ]]; then
    found=$(
      forget_tasks
      ask_for 20 srun --export=ALL --mpi=none --overlap --cpus-per-task=1 --gres=none --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \
        --nodelist="$SLURM_JOB_NODELIST" --kill-on-bad-exit=0 --wait=5 --input=none --output=none true
      sed -nE 's/^srun: error: Task launch for StepId=[0-9.+]+ failed on node ([A-Za-z0-9._-]+): .*/\1/p' <<<"$errors"
    )
  fi
  sort -u <<<"$found" | paste -sd, -
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

# leave_out JOB NODES: the pending JOB is to start without these nodes and those it leaves out already, if it has not asked for
# them by name and there are enough others: else it would wait for ever, and Slurm itself starts nothing on a node that it
# knows to be down.
leave_out() {
  local job=$1 nodes=$2 needed=${FOURFOLD_NODES:-$nodes_of_job} facts before named
  [[ -n $nodes ]] || return 0
  facts=$(facts_of "$job") || { say "Slurm does not say how job $job stands: it leaves out nothing" && return 0; }
  before=$(field ExcNodeList "$facts")
  nodes=${before:+$before,}$nodes
  named=$(field ReqNodeList "$facts")
  if [[ -n $named && -n $(comm -12 <(hosts_of "$named") <(hosts_of "$nodes")) ]]; then
    say "would leave out $nodes, but job $job asks for nodes by name (--nodelist=$named)"
  elif [[ $(field Features "$facts") == *[\&\|\*\[\(\!]* ]]; then
    say "would leave out $nodes, but which others may be had under --constraint=$(field Features "$facts") is not known"
  elif [[ $(comm -23 <(nodes_that_work "$facts") <(hosts_of "$nodes") | grep -c .) -lt ${needed%%-*} ]]; then
    say "would leave out $nodes, but there are too few others"
  else
    scontrol update "JobId=$job" "ExcNodeList=$nodes" && say "job $job leaves out $nodes"
  fi
}
