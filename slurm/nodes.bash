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

# leave_out JOB NODES: the pending JOB is to start without these nodes (find_left_out).
leave_out() {
  local facts left_out
  [[ -n $2 ]] || return 0
  facts=$(facts_of "$1") || { say "Slurm does not say how job $1 stands: it leaves out nothing" && return 0; }
  find_left_out "$1" "$facts" "$2"
  leave_out_found "$1"
}
