#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# After a node has failed the next job of a chain takes the nodes that are left, which keep steps of the run in their own folders, though
# others are free that Slurm would take; and goes on without them where they are not to be had. On a real Slurm.
# Usage: survivors.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 7
write_run
on_node 1 true || { echo "no namespaces can be entered here" && exit 77; }
mkdir fast
for node in 0 1 2 3 4 5 6; do expect on_node "$node" mount -t tmpfs tmpfs "$PWD/fast"; done
options=(--set train.steps=60 --set train.global_batch=240 --set optim.lr=1e-3 --set checkpoint.every_steps=1000
  --set "checkpoint.node_local_dir=$PWD/fast" --set checkpoint.node_local_every_steps=5 --set watchdog.silence_s=4)
export FOURFOLD_SETTLE_S=4 FOURFOLD_PREFER_S=15

# fails NAME TASKS: a chain on the nodes 2 to 5, with so many ranks on each, of which 3 fails.
fails() {
  local busy
  busy=$(sbatch --parsable --nodes=2 --nodelist=node0,node1 --exclusive --output=busy.log --wrap='sleep 300')
  until_holds 30 is_running "$busy"
  job=$("$fourfold" submit run.toml --nodes 2-4 --tasks-per-node "$2" --set mesh.tp="$2" --time 10 --chain 4 --name "$1" "${options[@]}" --set log.dir="$1" --go 2>"$errors")
  [[ $job =~ ^[0-9]+$ ]] || complain "not submitted: $(cat "$errors")"
  until_holds 120 has_steps "$1" 23 || complain "the run does not come to step 23"
  expect scancel "$busy"
  expect cluster kill-node 3
  until_holds 60 is_over "$job" || complain "job $job goes on"
}
is_over_chain() { test -e "$1/FINISHED" && no_jobs_of "$1"; }
# hosts_of_starts DIR: those of each, on a line.
hosts_of_starts() {
  python3 -c 'import json, sys
for one in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")):
    if one["event"] in ("start", "resume"):
        print(one["from_step"], *sorted(set(one["rank_hosts"])))' "$1"
}

# One rank on each: that node3 is gone Slurm says.
fails left 1
until_holds 240 is_over_chain left || complain "the chain does not finish: $(squeue; tail -n 20 left/*.log)"
hosts_of_starts left >starts.txt
expect grep -q "goes on on node2,node4,node5, which keep steps of the run" "left/left-$job.log"
# A fourth that was free may be there, too. The other job that was to go on never runs beside it, though two nodes are free.
expect python3 -c 'starts = [line.split() for line in open("starts.txt")]
assert len(starts) == 2 and int(starts[1][0]) >= 20 and {"node2", "node4", "node5"} <= set(starts[1][1:]), starts'
expect test "$(squeue --noheader --name=left --states=all --format='%A %T' | grep -c COMPLETED)" -eq 1
# The jobs of a chain begin in the order of their numbers: the one that was to be next has made room for another.
expect test "$(state_of $((job + 1))) $(state_of $((job + 2))) $(state_of $((job + 3)))" == 'CANCELLED COMPLETED CANCELLED'
# And the one that goes on is told as the next.
expect test "$(grep '"event":"end"' left/attempts.jsonl | grep -w "\"job\":\"$job\"" | tail -n 1 | sed -n 's/.*"next":"\([0-9]*\)".*/\1/p')" -eq $((job + 2))
expect grep -qx 'step 60' left/FINISHED
expect test "$(grep -c '"event":"begin"' left/attempts.jsonl)" -eq 2
expect cluster start-node 3
until_holds 60 all_are_idle 7 || complain "not all nodes are back: $(sinfo)"
until_holds 30 on_node 3 mount -t tmpfs tmpfs "$PWD/fast" || complain "node3 gets no folder of its own"

# Another job takes one of them first.
fails taken 2 &
watcher=$!
until_holds 150 test -e taken/hang.json || complain "node3 does not fail: $(squeue)"
taker=$(sbatch --parsable --partition=urgent --nodes=1 --nodelist=node4 --exclusive --output=busy.log --wrap='sleep 100')
wait "$watcher"
until_holds 60 is_running "$taker" || complain "job $taker does not take node4: $(squeue)"
until_holds 240 is_over_chain taken || complain "the chain does not finish: $(squeue; tail -n 20 taken/*.log)"
hosts_of_starts taken >starts.txt
expect test "$(wc -l <starts.txt)" -eq 2
expect test -z "$(grep -E 'node3.*node3|^[1-9].*node4' starts.txt)"
expect grep -qx 'step 60' taken/FINISHED
expect scancel "$taker"
expectations_met
