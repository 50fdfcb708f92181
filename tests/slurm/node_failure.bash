#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# A node's power is cut during a step, on a real Slurm: the job goes back into the queue by itself, takes the nodes that are
# left with the mesh that fits them, and goes on from the last checkpoint. Usage: node_failure.bash BUILD_DIR [other|batch]
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 4
write_run
# 240 sequences are dealt out to four replicas of two ranks, and to three; so many that the power is cut well before the
# checkpoint after the one that is waited for. At a small rate of learning another order of the sums stays a small difference.
options=(--set train.steps=60 --set train.global_batch=240 --set optim.lr=1e-3 --set checkpoint.every_steps=20)
expect_exit 0 "$fourfold" train run.toml "${options[@]}" --set log.dir=calm
losses calm/metrics.jsonl >calm.txt

# loses_node DIR NODE CODE: of the run in DIR, whose first start ends with CODE.
loses_node() {
  local dir=$1 node=$2 code=$3 job
  job=$("$fourfold" submit run.toml --nodes 3-4 --tasks-per-node 2 --time 10 --name lossy "${options[@]}" \
    --set mesh.tp=2 --set watchdog.silence_s=5 --set log.dir="$dir" --go 2>"$errors")
  [[ $job =~ ^[0-9]+$ ]] || complain "not submitted: $(cat "$errors")"
  until_holds 120 has_steps "$dir" 25 || complain "the run does not come to step 25"
  expect cluster kill-node "$node"
  expect_job "$job" 180 COMPLETED 0
  expect grep -qx 'step 60' "$dir/FINISHED"
  expect grep -q 'restart 1' "$dir/lossy-$job.log"
  expect python3 -c 'import json, sys
directory, node, code = sys.argv[1], "node" + sys.argv[2], json.loads(sys.argv[3])
attempts = [json.loads(line) for line in open(directory + "/attempts.jsonl")]
begins = [one for one in attempts if one["event"] == "begin"]
ends = [one for one in attempts if one["event"] == "end"]
assert [one["nodes"] for one in begins] == [4, 3] and begins[1]["from_step"] == 20, attempts
assert [one["code"] for one in ends] == [code, 0], attempts
starts = [json.loads(line) for line in open(directory + "/metrics.jsonl")]
starts = [one for one in starts if one["event"] in ("start", "resume")]
assert [one["mesh"] for one in starts] == ["pp1 dp4 cp1 tp2", "pp1 dp3 cp1 tp2"], starts
assert starts[1]["from_step"] == 20 and node not in starts[1]["rank_hosts"], starts[1]' "$dir" "$node" "$code"
  losses "$dir/metrics.jsonl" >"$dir.txt"
  expect_near calm.txt "$dir.txt" 60
  expect_exit 0 "$fourfold" ckpt verify --deep "$dir/checkpoints"
  expect cluster start-node "$node"
  until_holds 60 all_are_idle 4
}

if [[ ${2:-other} == other ]]; then
  # Slurm gives the job back itself when it takes the node for down, and here the script is to be the first, on a busy machine too.
  sed -i 's/^SlurmdTimeout=.*/SlurmdTimeout=20/' "$SLURM_CONF"
  expect scontrol reconfigure
  loses_node other 3 85
  expect grep -q 'leaves out node3' other/lossy-*.log
  expect grep -q 'as have all ranks on its machine\|nor does its machine' other/lossy-*.log
  sed -i 's/^SlurmdTimeout=.*/SlurmdTimeout=6/' "$SLURM_CONF"
  expect scontrol reconfigure
fi
# The node on which the batch script runs: nobody is left to say anything, and Slurm requeues the job.
if [[ ${2:-batch} == batch ]]; then
  loses_node batch 0 85
  # The ranks that were left have told, and the next start has noted it.
  expect grep -q '"event":"end".*\(as have all ranks on its machine\|nor does its machine\)' batch/attempts.jsonl
fi
expectations_met
