#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Fifty times in one chain of jobs a rank, the step or a node dies at a random moment, on a real Slurm. The run comes to its
# end, and its losses are those of a run that nothing happened to, bit for bit. Usage: chaos.bash BUILD_DIR [KILLS [SEED]]
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
kills=${2:-50}
seed=${3:-$(date +%s)}
RANDOM=$seed
echo "seed $seed"
begin_cluster "$1" 4
write_run
options=(--set train.global_batch=64 --set mesh.dp=2 --set watchdog.silence_s=4)
expect_exit 0 ranks 2 train run.toml "${options[@]}" --set log.dir=short --set train.steps=200
# Three seconds of training for each kill, a checkpoint after every half second.
read -r steps every < <(python3 -c 'import json, statistics, sys
steps = [json.loads(line) for line in open("short/metrics.jsonl")]
step_s = statistics.median(one["step_s"] for one in steps if one["event"] == "step")
print(round(3 * int(sys.argv[1]) / step_s), max(1, round(0.5 / step_s)))' "$kills")
options+=(--set train.steps="$steps" --set checkpoint.every_steps="$every")
expect_exit 0 ranks 2 train run.toml "${options[@]}" --set log.dir=calm
losses calm/metrics.jsonl >calm.txt

starts() { grep -cE '"event":"(start|resume)"' chaos/metrics.jsonl 2>/dev/null || true; }
has_begun() { [[ $(starts) -gt $1 ]]; }
is_finished() { test -e chaos/FINISHED; }
# The job that runs now.
running_job() { squeue --noheader --name=fourfold-chaos --states=RUNNING --format=%A | head -n 1; }
# One death. What it was is printed.
kill_something() {
  local job=$1 victims nodes node
  case $((RANDOM % 10)) in
    [0-5])
      mapfile -t victims < <(ranks_of "$job")
      [[ ${#victims[@]} -gt 0 ]] || return 1
      kill -KILL "${victims[RANDOM % ${#victims[@]}]}" 2>/dev/null || return 1
      echo "a rank of job $job"
      ;;
    [6-7])
      scancel --signal=KILL "$job.0" 2>/dev/null || return 1
      echo "the step of job $job"
      ;;
    *)
      mapfile -t nodes < <(scontrol show hostnames "$(squeue --noheader --jobs="$job" --format=%N)" 2>/dev/null)
      [[ ${#nodes[@]} -gt 0 ]] || return 1
      node=${nodes[RANDOM % ${#nodes[@]}]}
      cluster kill-node "${node#node}" >/dev/null 2>&1 || return 1
      echo "$node, of job $job"
      sleep 1
      cluster start-node "${node#node}" >/dev/null 2>&1
      ;;
  esac
}

export FOURFOLD_STUCK_AFTER=20 # what dies before its first checkpoint gets no further; that is not the question here
expect_exit 0 "$fourfold" submit run.toml --nodes 2 --tasks-per-node 1 --time 10 --chain 1000 "${options[@]}" \
  --set log.dir=chaos --go
# What was killed may stay a zombie for a while where init is slow to reap it, which Slurm takes for a process that cannot be
# killed, and drains the node.
resume_drained() {
  local node
  for node in $(sinfo --noheader --Node --partition=test --states=drain,drained,draining --format=%N); do
    scontrol update "NodeName=$node" State=RESUME
  done
}
made=0 begun=0
while [[ $made -lt $kills ]] && ! is_finished; do
  resume_drained
  until_holds 90 has_begun "$begun" || { complain "nothing starts any more: $(squeue; tail -n 3 chaos/attempts.jsonl)" && break; }
  begun=$(starts)
  sleep "$((RANDOM % 3)).$((RANDOM % 10))"
  what=$(kill_something "$(running_job)") || continue
  made=$((made + 1))
  echo "$made: $what, at step $(sed -n 's/.*"step": *\([0-9]*\),.*/\1/p' chaos/status.json | head -n 1)"
done
[[ $made -eq $kills ]] || complain "finished after $made kills"
resume_drained
until_holds 600 is_finished || complain "the run did not come to its end: $(squeue; tail -n 3 chaos/attempts.jsonl)"
losses chaos/metrics.jsonl >chaos.txt
expect cmp calm.txt chaos.txt
expect_exit 0 "$fourfold" ckpt verify --deep chaos/checkpoints
expect_exit 0 "$fourfold" ckpt diff calm/checkpoints chaos/checkpoints
expectations_met
