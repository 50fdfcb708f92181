# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A run that goes on inside its job when a node or a rank has failed, on the nodes that are left; job.bash sources it. The job should
# be submitted with --no-kill: else Slurm ends it with its first node.

# How often; empty: never.
restarts_inside=${FOURFOLD_RESTARTS_INSIDE:-0}
if [[ ! $restarts_inside =~ ^(0|[1-9][0-9]{0,9})$ ]]; then
  say "FOURFOLD_RESTARTS_INSIDE=$restarts_inside is ignored (it is no number of restarts)"
  restarts_inside=0
fi
[[ $restarts_inside != 0 ]] || restarts_inside=''
nodes_left_out='' # with commas, of the job's nodes
# A step with --no-kill is not ended with the first of its tasks that fails, nor when a minute has passed since.
unset SLURM_NO_KILL

# start_guard NODES: Slurm leaves a job with --no-kill even its last nodes when the one of its batch script fails, until its time is over. A
# step on another of these nodes sees to that (guard.bash). None where there is no other.
guard='' guard_node=''
start_guard() {
  local node nodes
  stop_guard
  nodes=$(hosts_of "$1" | grep -vxF "${SLURMD_NODENAME-}")
  node=$(grep -vxF "$guard_node" <<<"$nodes" | tail -n 1) # not where the last one has just ended
  node=${node:-$(tail -n 1 <<<"$nodes")}
  [[ -n $node && -n ${SLURMD_NODENAME-} ]] || return 0
  # shellcheck disable=SC2154  # fourfold_slurm: of job.bash
  (
    trap '' TERM USR1 USR2
    forget_tasks
    exec srun --export=ALL --mpi=none --overlap --ntasks=1 --nodes=1 --cpus-per-task=1 --gres=none --nodelist="$node" --job-name=fourfold-guard \
      --input=none --output=/dev/null --quiet bash "$fourfold_slurm/guard.bash"
  ) &
  guard=$! guard_node=$node
  disown "$guard"
}
# see_to_guard: another one where it is gone, with its node, on one that this launch may use and Slurm has not taken out of the job.
see_to_guard() {
  local held
  [[ -z $guard ]] || kill -0 "$guard" 2>/dev/null || {
    held=$(comm -12 <(hosts_of "$SLURM_JOB_NODELIST") <(hosts_of "$(field NodeList "$(facts_of "$SLURM_JOB_ID")")") | paste -sd, -)
    start_guard "${held:-$SLURM_JOB_NODELIST}"
  }
}
# What it has started on another node ends with the job.
stop_guard() {
  [[ -z $guard ]] || kill -KILL "$guard" 2>/dev/null
  guard=''
}

# may_restart_inside CODE: whether there may be another launch in this job after a step that ended with CODE: there are restarts left,
# nobody wants the job to end, and there is a minute left to train.
may_restart_inside() {
  [[ -n $restarts_inside && ${FOURFOLD_LAUNCH:-0} -lt $restarts_inside && $1 -ne 0 && $1 -ne 75 ]] &&
    [[ -z $told_to_stop && ${is_ending:-0} == 0 && ${preempted:-0} == 0 ]] &&
    [[ -z $deadline || $((deadline - $(date +%s))) -ge 60 ]]
}

# nodes_to_use COUNT: so many of this job's nodes, with commas, for a launch that leaves some idle, so that they keep all that the ones of
# the launch before, `nodes_used` in their order, have kept of the run: each also keeps what the one before it wrote (checkpoint.node_local_partner).
# Nothing where no such nodes are found.
nodes_to_use() {
  local left=() one i next without
  mapfile -t left < <(hosts_in_order "$SLURM_JOB_NODELIST")
  keep_all() { # NODE...: whether these do
    for ((i = 0; i < ${#nodes_used[@]}; ++i)); do
      next=${nodes_used[(i + 1) % ${#nodes_used[@]}]}
      [[ " $* " == *" ${nodes_used[i]} "* || " $* " == *" $next "* ]] || return 1
    done
  }
  keep_all "${left[@]}" || return 0
  for ((one = ${#left[@]} - 1; one >= 0 && ${#left[@]} > $1; --one)); do
    without=("${left[@]:0:one}" "${left[@]:one+1}")
    ! keep_all "${without[@]}" || left=("${without[@]}")
  done
  [[ ${#left[@]} -gt $1 ]] || (IFS=, && echo "${left[*]}")
}
nodes_used=()

# give_up_step PROCESS: ends the srun that is a child of it, and, in the background, what it has left on nodes that answer: the others
# scancel waits for.
give_up_step() {
  local answer='' step name steps=()
  say "the run has ended, and srun still waits for a node: going on without it"
  # shellcheck disable=SC2154  # own_number: of job.bash
  ask squeue --noheader --steps --jobs="$own_number" --format='%i %j'
  pkill -KILL --parent "$1"
  while read -r step name; do
    # Of an array, other tasks' would be listed for the number of the last one.
    [[ $name != "${FOURFOLD##*/}" || (${step%.*} != "$own_number" && ${step%.*} != "$SLURM_JOB_ID") ]] || steps+=("$step")
  done <<<"$answer"
  [[ ${#steps[@]} -eq 0 ]] || (trap '' TERM USR1 USR2 && exec scancel --signal=KILL "${steps[@]}" >/dev/null 2>&1) &
}

# has_lost_nodes: whether Slurm has taken a node out of this job of which it was to make use.
has_lost_nodes() {
  local facts
  [[ -n $restarts_inside ]] && facts=$(facts_of "$SLURM_JOB_ID") || return
  [[ -n $(comm -23 <(hosts_of "${SLURM_JOB_NODELIST-}") <(hosts_of "$(field NodeList "$facts")")) ]]
}

# take_nodes_left FAILED: makes of this job, for what it launches, one on its nodes without those (with commas), and without those that
# Slurm has taken out of it. Fails when nothing is left, or the job is no longer to run.
take_nodes_left() {
  local facts per_node nodes left
  facts=$(facts_of "$SLURM_JOB_ID") && [[ $(field JobState "$facts") == RUNNING ]] || return
  if [[ -z ${FOURFOLD_TASKS_PER_NODE-} && ${SLURM_TASKS_PER_NODE:-1} == *,* ]]; then
    say "the job has not as many tasks on each of its nodes: the run does not go on inside it"
    return 1
  fi
  nodes=$(hosts_of "$(field NodeList "$facts")")
  left=$(comm -23 <(echo "$nodes") <(tr ',' '\n' <<<"$1" | sort -u) | grep .) || return
  # shellcheck disable=SC2034  # for launch
  nodes_left_out=$(comm -13 <(echo "$left") <(echo "$nodes") | paste -sd, -)
  FOURFOLD_HELD_NODES=$(grep -c . <<<"$nodes")
  export FOURFOLD_HELD_NODES # they are paid for all the same
  per_node=${SLURM_NTASKS_PER_NODE:-$(((${SLURM_NTASKS:-$SLURM_JOB_NUM_NODES} - 1) / SLURM_JOB_NUM_NODES + 1))}
  left=$(hosts_in_order "$(field NodeList "$facts")" | grep -xF "$left")
  nodes=$(grep -c . <<<"$left")
  SLURM_JOB_NODELIST=$(paste -sd, - <<<"$left") SLURM_JOB_NUM_NODES=$nodes SLURM_NTASKS=$((nodes * per_node))
  SLURM_NODELIST=$SLURM_JOB_NODELIST SLURM_NNODES=$nodes SLURM_NPROCS=$SLURM_NTASKS SLURM_TASKS_PER_NODE="$per_node(x$nodes)"
  export SLURM_JOB_NODELIST SLURM_NODELIST SLURM_JOB_NUM_NODES SLURM_NNODES SLURM_NTASKS SLURM_NPROCS SLURM_TASKS_PER_NODE
  say "going on inside the job, on what is left of it: $SLURM_JOB_NODELIST"
}
