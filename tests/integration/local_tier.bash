#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Steps between checkpoints, on the nodes of a run: killed between two checkpoints, it goes on from the newest of them
# with the same bits; also when a node and all it held is gone. Usage: local_tier.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"

prepare_text 300 --validation-fraction 0.1
mkdir fast disk0 disk1
cat >run.toml <<END
[model]
layers = 2
hidden = 32
heads = 2
vocab = 257
context = 32
[train]
global_batch = 8
micro_batch = 1
steps = 10
[optim]
lr = 1e-2
schedule = "constant"
[data]
train = ["tokens_train"]
[checkpoint]
every_steps = 0
node_local_dir = "$work/fast"
node_local_every_steps = 3
[log]
dir = "run"
END

# Each rank on a node of its own name, with a disk of its own at fast/. A job of a mount namespace, which ends with it.
cat >node.bash <<'END'
number=${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-0}}
hostname "node$number"
case $1 in
  own) mount --bind "disk$number" fast || exit 71 ;;
  full) mount -t tmpfs -o size=100k none fast || exit 71 ;;
esac
shift
exec "$@"
END
# Notes the process, that it can be killed.
cat >noted.bash <<'END'
touch "pids/$$"
exec "$@"
END
flags=-mu
[[ $(id -u) -eq 0 ]] || flags=-rmu
# on_nodes own|full|shared N COMMAND...
on_nodes() {
  local disk=$1 n=$2
  shift 2
  "$MPIEXEC" -n "$n" unshare "$flags" bash node.bash "$disk" "$@"
}

# newest FOLDER: the newest step that is complete in it; 0 when there is none.
newest() {
  local step
  step=$(find "$1" -path '*/step-*' -name MANIFEST.json 2>/dev/null | sed 's,.*/step-0*,,;s,/.*,,' | sort -n | tail -n 1)
  echo "${step:-0}"
}

# kill_at FOLDER STEP COMMAND...: runs it until the step, or a later one, is in the folder; then its ranks are killed.
kill_at() {
  local folder=$1 limit=$2 launcher
  shift 2
  rm -rf pids
  mkdir pids
  "$@" >"$output" 2>"$errors" </dev/null &
  launcher=$!
  for _ in $(seq 600); do
    [[ $(newest "$folder") -ge $limit ]] && break
    sleep 0.1
  done
  (cd pids && kill -KILL -- *)
  wait "$launcher" # what a launcher makes of this is its own
}

# same_losses RUN OTHER: of all steps of the first, as it made them last.
same_losses() {
  python3 -c 'import json, sys
def steps(run):
    records = [json.loads(line) for line in open(f"{run}/metrics.jsonl")]
    return {r["step"]: (r["loss"], r["grad_norm"]) for r in records if r["event"] == "step"}
one, other = steps(sys.argv[1]), steps(sys.argv[2])
assert sorted(one) == list(range(1, len(one) + 1)) and one == {step: other[step] for step in one}' "$1" "$2"
}

# What cannot be is told before anything runs.
expect_exit 78 "$fourfold" train run.toml --set checkpoint.node_local_every_steps=0
expect_stderr 'checkpoint.node_local_dir = '
expect_exit 73 "$fourfold" train run.toml --set 'checkpoint.node_local_dir="/dev/null/fast"'
expect_exit 0 "$fourfold" plan run.toml --ranks 2
expect_stdout 'steps between checkpoints, each rank at most: '

# A run that ends leaves its last checkpoint and nothing else.
expect_exit 0 ranks 2 train run.toml
expect_stderr "steps between checkpoints: every 3 in $work/fast on 1 node, at most"
expect_stderr 'checkpoint.node_local_partner has no effect: all ranks are on one node'
expect_stderr "step 9 is in $work/fast"
expect test "$(newest run/checkpoints)" = 10 -a ! -e run/checkpoints/.fast-level
expect rmdir fast # which is empty

# Killed between two checkpoints. A dry run changes nothing; the restart goes on from the node-local step.
kill_at fast 18 "$MPIEXEC" -n 2 bash noted.bash "$fourfold" train run.toml --set train.steps=100000
step=$(newest fast)
folder=run/checkpoints/step-$(printf %09d "$step")
expect_exit 0 ranks 2 train run.toml --set train.steps=$((step + 4)) --dry-run
expect test "$(newest run/checkpoints)" = 10 -a "$(newest fast)" = "$step"
expect_exit 0 ranks 2 train run.toml --set train.steps=$((step + 4))
expect_stderr "step $step of the node-local tier is newer than what run/checkpoints has whole: copied there"
expect_stderr "resumed from $folder (step $step, "
expect_exit 0 "$fourfold" ckpt verify --deep run/checkpoints
expect_stdout "$folder"
expect test "$(newest run/checkpoints)" = $((step + 4)) -a -z "$(ls fast)"
expect_exit 0 ranks 2 train run.toml --set log.dir=whole --set train.steps=$((step + 4)) --set 'checkpoint.node_local_dir=""'
expect_stderr 'checkpoint.node_local_every_steps has no effect (it needs checkpoint.node_local_dir)'
expect same_losses run whole

if ! unshare "$flags" bash node.bash own true 2>/dev/null; then
  echo 'not tried on two nodes: unshare gives no name and no mounts of its own here'
  expectations_met
  exit
fi

# Two nodes. The folder has to be another one on each.
expect_exit 78 on_nodes shared 2 "$fourfold" train run.toml --set log.dir=shared
expect_stderr 'is the same folder on several nodes'

# One of them is lost with all that it held: the other one has copies. Without copies it is the checkpoint.
for partner in true false; do
  run=nodes-$partner
  options=(--set "log.dir='$run'" --set "checkpoint.node_local_partner=$partner")
  expect_exit 0 on_nodes own 2 "$fourfold" train run.toml "${options[@]}"
  expect_stderr "in $work/fast on 2 nodes"
  kill_at disk0 18 on_nodes own 2 bash noted.bash "$fourfold" train run.toml "${options[@]}" --set train.steps=100000
  step=$(newest disk1)
  rm -rf disk0/*
  expect_exit 0 on_nodes own 2 "$fourfold" train run.toml "${options[@]}" --set train.steps=$((step + 4))
  if [[ $partner == true ]]; then
    expect_stderr "step $step of the node-local tier is newer than what $run/checkpoints has whole: copied there"
    expect_stderr "resumed from $run/checkpoints/step-$(printf %09d "$step") (step $step, "
  else
    expect_stderr "step $step of the node-local tier is passed over: 1 of its 2 files are on no node of this run"
    expect_stderr "resumed from $run/checkpoints/step-000000010 (step 10, "
  fi
  expect_exit 0 ranks 2 train run.toml --set "log.dir='whole-$run'" --set train.steps=$((step + 4)) --set 'checkpoint.node_local_dir=""'
  expect same_losses "$run" "whole-$run"
  expect rmdir disk0 disk1 # which are empty
  mkdir disk0 disk1
done

# A node's disk that is full costs a warning for each step, and changes nothing.
expect_exit 0 on_nodes full 2 "$fourfold" train run.toml --set log.dir=full
expect_stderr 'step 3 is not saved on the node-local tier, and training goes on: '
expect_stderr 'step 9 is not saved on the node-local tier, and training goes on: '
expect same_losses full whole

expectations_met
