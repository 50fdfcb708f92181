#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# `submit --restarts-inside`, on a real Slurm: a node's power is cut, a rank is killed, a rank stands still; the run goes on in the
# same job, on what is left of it, from the steps in its nodes' own folders. What that took is printed.
# Usage: restarts_inside.bash BUILD_DIR [one|more|rank0|unnoticed|slurmd|batch|guard|whole]
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
# What is left of a launch on a node that is gone has memory of the job, too.
export TEST_CLUSTER_MEMORY=gather TEST_CLUSTER_MEM_PER_CPU=400
begin_cluster "$1" 4
write_run
on_node 1 true || { echo "no namespaces can be entered here" && exit 77; }
# 240 sequences are dealt out to four, three and two replicas of two ranks. At a small rate of learning another order of the sums stays
# a small difference.
options=(--set train.steps=70 --set train.global_batch=240 --set optim.lr=1e-3 --set checkpoint.every_steps=1000
  --set "checkpoint.node_local_dir=$PWD/fast" --set checkpoint.node_local_every_steps=5 --set mesh.tp=2 --set watchdog.silence_s=4)
expect_exit 0 ranks 2 train run.toml "${options[@]}" --set log.dir=calm --set 'checkpoint.node_local_dir=""'
losses calm/metrics.jsonl >calm.txt
mkdir fast
own_folder_on() { until_holds 30 on_node "$1" mount -t tmpfs tmpfs "$PWD/fast" || complain "node$1 gets no folder of its own"; }
for node in 0 1 2 3; do own_folder_on "$node"; done

# submits DIR ARGUMENT...: a job on all nodes, whose number is left in `job`.
submits() {
  local dir=$1
  shift
  [[ $# -gt 0 ]] || set -- --nodes 2-4 --tasks-per-node 2
  job=$("$fourfold" submit run.toml --time 10 --chain 3 --name inside "${options[@]}" --set log.dir="$dir" \
    --restarts-inside 3 "$@" --go 2>"$errors")
  [[ $job =~ ^[0-9]+$ ]] || complain "not submitted: $(cat "$errors")"
}

# has_launched DIR N: the run has made a step in so many launches.
has_launched() { [[ $(grep -cE '"event":"(start|resume)"' "$1/metrics.jsonl" 2>/dev/null) -ge $2 ]]; }
tells_end() { grep -q '"code": 8[56]' "$1/exit.json" 2>/dev/null; }

# goes_on DIR LAUNCH SECONDS: it tells the end of a launch, and makes a step in that one; prints how long after.
goes_on() {
  local detected
  until_holds 60 tells_end "$1" || complain "no end is told: $(cat "$1/exit.json")"
  detected=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["time"])' "$1/exit.json")
  until_holds 60 has_launched "$1" $(($2 + 1)) || complain "the run does not go on: $(tail -n 20 "$1"/inside-*.log)"
  expect python3 -c 'import json, sys, time
name, detected, launch, most_s = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
for _ in range(100):  # its first step is under way
    events = [json.loads(line) for line in open(name)]
    begins = [i for i, one in enumerate(events) if one["event"] in ("start", "resume")]
    steps = [one for one in events[begins[launch]:] if one["event"] == "step"]
    if steps:
        break
    time.sleep(0.2)
before = [one["step"] for one in events[:begins[launch]] if one["event"] == "step"]
lost = before[-1] - events[begins[launch]]["from_step"]
took_s = steps[0]["time"] - detected
print(f"{name}: launch {launch} trains {took_s:.1f} s after the end was told; {lost} steps lost")
assert lost <= 5, lost
assert took_s <= 2 * most_s, took_s' "$1/metrics.jsonl" "$detected" "$2" "$3"
  grep -h 'after the end was told' "$said"
}

# ends_well DIR NODES...: on these numbers of nodes one after the other, in one job.
ends_well() {
  local dir=$1
  shift
  expect_job "$job" 180 COMPLETED 0
  expect grep -qx 'step 70' "$dir/FINISHED"
  expect python3 -c 'import json, sys
directory, nodes = sys.argv[1], [int(word) for word in sys.argv[2:]]
events = [json.loads(line) for line in open(directory + "/attempts.jsonl")]
begins = [one for one in events if one["event"] == "begin"]
assert len({one["job"] for one in begins}) == 1 and [one["nodes"] for one in begins] == nodes, begins
assert [one.get("launch", 0) for one in begins] == list(range(len(nodes))), begins
ends = [one["code"] for one in events if one["event"] == "end"]
assert len(ends) == len(nodes) and ends[-1] == 0 and set(ends[:-1]) <= {85, 86}, ends' "$dir" "$@"
  losses "$dir/metrics.jsonl" >"$dir.txt"
  expect_near calm.txt "$dir.txt" 70
  expect_exit 0 "$fourfold" ckpt verify --deep "$dir/checkpoints"
  until_holds 60 no_jobs_of inside || complain "a job of the chain is left: $(squeue)"
}

# back NODE: it has power again.
back() {
  expect cluster start-node "$1"
  own_folder_on "$1"
  until_holds 60 all_are_idle 4 || complain "node$1 does not come back: $(sinfo)"
}

# loses NODE: the power of one that does not run the batch script is cut, then one of the ranks that are left is killed.
loses() {
  submits "node$1"
  until_holds 120 has_steps "node$1" 13 || complain "the run does not come to step 13"
  expect cluster kill-node "$1"
  goes_on "node$1" 1 15
  until_holds 120 has_steps "node$1" 36 || complain "the run does not come to step 36"
  expect kill -KILL "$(ranks_of "$job" 3)"
  goes_on "node$1" 2 15
  ends_well "node$1" 4 3 3
  expect grep -q "going on inside the job" "node$1/inside-$job.log"
  expect_exit 0 "$fourfold" status "node$1"
  expect_stdout ' 0+1     3'
  back "$1"
}

# Rank 0 stands still, on the node of the batch script, which goes on without it; then the node fails that has rank 0, and the lease, by now.
rank0() {
  submits rank0
  until_holds 120 has_steps rank0 13 || complain "the run does not come to step 13"
  expect kill -STOP "$(ranks_of "$job" 0)"
  goes_on rank0 1 25
  until_holds 120 has_steps rank0 32 || complain "the run does not come to step 32"
  expect cluster kill-node 1
  goes_on rank0 2 25
  ends_well rank0 4 3 2
  # The node of the rank that stood still was still the job's.
  expect grep -q '"launch":1,.*"nodes":3,"held_nodes":4' rank0/attempts.jsonl
  back 1
}

# One rank on each node, and a controller that takes its time (SlurmdTimeout): that the node has gone with its rank is known by a step that
# srun cannot launch there.
unnoticed() {
  sed -i 's/^SlurmdTimeout=.*/SlurmdTimeout=300/' "$SLURM_CONF"
  expect scontrol reconfigure
  submits unnoticed --nodes 2-4 --tasks-per-node 1 --set mesh.tp=1
  until_holds 120 has_steps unnoticed 13 || complain "the run does not come to step 13"
  expect cluster kill-node 2
  goes_on unnoticed 1 60
  sed -i 's/^SlurmdTimeout=.*/SlurmdTimeout=6/' "$SLURM_CONF"
  expect scontrol reconfigure
  ends_well unnoticed 4 3
  expect grep -q '"event":"end".*; node2 does not answer Slurm' unnoticed/attempts.jsonl
  back 2
}

# A slurmd that dies: Slurm takes its node out of the job and ends the step, while the rank there lives on. The run tells nothing.
slurmd() {
  submits slurmd --nodes 2-4 --tasks-per-node 1 --set mesh.tp=1 --set train.steps=100000
  until_holds 120 has_steps slurmd 13 || complain "the run does not come to step 13"
  expect cluster kill-slurmd 2
  until_holds 90 has_launched slurmd 2 || complain "the run does not go on: $(tail -n 20 slurmd/inside-*.log)"
  expect grep -q '"event":"begin".*"launch":1,.*"nodes":3' slurmd/attempts.jsonl
  expect python3 -c 'import json
end = [one for one in map(json.loads, open("slurmd/attempts.jsonl")) if one["event"] == "end"][0]
assert end["code"] == 85 and end["reason"].endswith("; node2 does not answer Slurm"), end'
  expect scancel --name=inside
  until_holds 60 no_jobs_of inside || complain "a job of the chain is left: $(squeue)"
  expect cluster kill-node 2
  back 2
}

# continues DIR NUMBER: by the job that was submitted so many after the first.
continues() {
  expect_job "$((job + $2))" 180 COMPLETED 0
  expect grep -qx 'step 70' "$1/FINISHED"
  until_holds 60 no_jobs_of inside || complain "a job of the chain is left: $(squeue)"
}

# The batch script's own node: the queue's way.
batch() {
  submits batch
  until_holds 120 has_steps batch 13 || complain "the run does not come to step 13"
  expect cluster kill-node 0
  expect_job "$job" 60 CANCELLED
  expect grep -q 'node0, where the batch script ran, has failed' "batch/inside-$job.log"
  continues batch 1
  expect python3 -c 'import json
ends = [one for one in map(json.loads, open("batch/attempts.jsonl")) if one["event"] == "end"]
assert [one["code"] for one in ends] == [85, 0] and "node0" in ends[0]["reason"], ends'
  back 0
}

guard_step() { squeue --noheader --steps --jobs="$job" --format='%i %j' | sed -n 's/ fourfold-guard$//p' | grep .; }
has_no_guard() { ! guard_step; }
guard_is_on() { squeue --noheader --steps --jobs="$job" --format='%j %N' | grep -qx "fourfold-guard $1"; }

# A guard that has gone is made anew, and sees the batch script's node fail.
guard() {
  submits guard --nodes 2-4 --tasks-per-node 2 --set train.steps=100000
  until_holds 120 has_steps guard 13 || complain "the run does not come to step 13"
  expect scancel --signal=KILL "$(guard_step)"
  until_holds 30 has_no_guard || complain "the guard does not end: $(squeue --steps)"
  until_holds 60 guard_step || complain "no other guard comes: $(squeue --steps)"
  expect cluster kill-node 0
  expect_job "$job" 60 CANCELLED
  expect grep -q 'node0, where the batch script ran, has failed' "guard/inside-$job.log"
  expect scancel --name=inside
  until_holds 60 no_jobs_of inside || complain "a job of the chain is left: $(squeue)"
  back 0
}

# A mesh that needs all nodes: the queue's way, too, which gets another node.
whole() {
  submits whole --nodes 3 --tasks-per-node 2 --set mesh.dp=3
  until_holds 120 has_steps whole 13 || complain "the run does not come to step 13"
  expect cluster kill-node 2
  until_holds 60 is_over "$job" || complain "job $job goes on"
  expect grep -q 'no mesh fits on the nodes that are left' whole/inside-*.log
  # The next job waits for the one that asks for the nodes that keep steps.
  continues whole 2
  expect grep -q "job $((job + 2)) goes on on node0,node1, which keep steps of the run" "whole/inside-$job.log"
  back 2
}

# A batch that the nodes that are left do not divide: of three the run takes two, which keep all of the four that it had.
spare() {
  submits spare --nodes 2-4 --tasks-per-node 1 --set mesh.tp=1 --set train.global_batch=128 --set train.steps=100000
  until_holds 120 has_steps spare 13 || complain "the run does not come to step 13"
  expect cluster kill-node 3
  goes_on spare 1 15
  expect grep -q '"event":"begin".*"launch":1,.*"nodes":3' spare/attempts.jsonl
  expect scancel --name=inside
  until_holds 60 no_jobs_of inside || complain "a job of the chain is left: $(squeue)"
  back 3
  # The guard is on a node that the run does not use, which fails; then that of the batch script does.
  submits guarded --nodes 3 --tasks-per-node 1 --set mesh.tp=1 --set train.global_batch=128 --set train.steps=100000
  until_holds 120 has_steps guarded 13 || complain "the run does not come to step 13"
  until_holds 10 guard_is_on node2 || complain "the guard is elsewhere: $(squeue --steps)"
  expect cluster kill-node 2
  until_holds 90 guard_is_on node1 || complain "no other guard comes: $(squeue --steps)"
  expect cluster kill-node 0
  expect_job "$job" 60 CANCELLED
  expect grep -q 'node0, where the batch script ran, has failed' "guarded/inside-$job.log"
  expect scancel --name=inside
  until_holds 60 no_jobs_of inside || complain "a job of the chain is left: $(squeue)"
  expect cluster start-node 0
  own_folder_on 0
  back 2
}

# Who asks the run to stop when a rank has just failed has the last word: nothing is launched again in the job, and the next one of the
# chain goes on, as after any USR2.
told() {
  submits told --nodes 2-4 --tasks-per-node 2 --set train.steps=100000
  until_holds 120 has_steps told 13 || complain "the run does not come to step 13"
  expect kill -STOP "$(ranks_of "$job" 3)"
  sleep 1
  expect scancel --signal=USR2 "$job"
  until_holds 60 is_over "$job" || complain "job $job goes on: $(tail -n 20 told/inside-*.log)"
  expect grep -q '"told_to_stop": true' told/exit.json
  expect grep -Eq 'outcome: again, exit code 8[56], next job' "told/inside-$job.log"
  expect_exit 1 grep -q 'going on inside the job' "told/inside-$job.log"
  until_holds 90 has_launched told 2 || complain "the chain does not go on: $(squeue)"
  # Nor when the run has told its end already, and nothing else of it hears the signal.
  job=$(squeue --noheader --name=inside --states=RUNNING --format=%A)
  expect kill -KILL "$(ranks_of "$job" 3)"
  until_holds 60 tells_end told || complain "no end is told: $(cat told/exit.json)"
  expect scancel --signal=USR2 "$job"
  until_holds 60 is_over "$job" || complain "job $job goes on: $(tail -n 20 told/inside-*.log)"
  expect scancel --name=inside
  until_holds 60 no_jobs_of inside || complain "a job of the chain is left: $(squeue)"
}

case ${2:-one} in
  one) loses 2 ;;
  more) loses 1 && loses 3 && rank0 && unnoticed && slurmd && batch && guard && spare && whole && told ;;
  *) "$2" ;;
esac
expectations_met
