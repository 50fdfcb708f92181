#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Training with the optimizer's state on the host and on a disk, over real MPI ranks: the same bits; and everything that
# can be wrong with the disk, before a run and in the middle of it. Usage: offload_program.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"
mkdir disk
losses() { grep -o '"loss":[0-9.]*' "$1/metrics.jsonl"; }

prepare_text 300
cat >run.toml <<'END'
[model]
layers = 2
hidden = 64
heads = 4
vocab = 257
context = 32
[train]
global_batch = 8
micro_batch = 2
steps = 6
precision = "bf16"
[optim]
schedule = "constant"
[data]
train = ["tokens"]
[checkpoint]
every_steps = 3
[log]
dir = "plain"
END

# The same losses and the same checkpoint, wherever the state lies.
expect_exit 0 ranks 2 train run.toml --set mesh.zero=1
for tier in cpu nvme:disk; do
  name=${tier%:*}
  expect_exit 0 ranks 2 train run.toml --set mesh.zero=1 --set "log.dir=$name" --set "offload.optimizer=$tier" \
    --set offload.buffer_mb=0.5
  expect_stderr 'offloaded per rank: '
  expect test "$(losses plain)" = "$(losses "$name")"
  expect cmp <(grep identity plain/checkpoints/step-000000006/MANIFEST.json) \
    <(grep identity "$name/checkpoints/step-000000006/MANIFEST.json")
done
expect test -z "$(ls disk)"
expect_exit 0 ranks 2 train run.toml --set mesh.zero=1 --set log.dir=activations --set offload.activations=cpu
expect grep -qE 'offloaded per rank: [0-9.]+ MiB in host memory \(activations [0-9.]*[1-9]' "$errors"
expect test "$(losses plain)" = "$(losses activations)"
# It goes on with the state elsewhere, and verify holds it against one rank.
expect_exit 0 "$fourfold" train run.toml --set log.dir=nvme --set train.steps=8
expect_stderr 'resumed from nvme/checkpoints/step-000000006'
expect_exit 0 "$fourfold" verify run.toml --set offload.optimizer=nvme:disk --mesh dp=1 --mesh dp=2,zero=3

# What is planned is what a run takes.
expect_exit 0 "$fourfold" plan run.toml --ranks 2 --set offload.optimizer=nvme:"$work/none"
expect_stdout "on disk in $work/none"
expect_exit 0 "$fourfold" plan run.toml --ranks 2 --set offload.activations=cpu
expect_stdout 'MiB in host memory'
expect_exit 78 "$fourfold" plan run.toml --ranks 2 --set offload.activations=nvme:disk
expect_stderr '"none", "cpu"'

# A disk that is none, or too full, or a word that means nothing.
expect_exit 78 "$fourfold" train run.toml --set log.dir=bad --set offload.optimizer=nvme:"$work/none"
expect_stderr "offload.optimizer = \"nvme:$work/none\": $work/none: No such file or directory"
expect_exit 78 "$fourfold" train run.toml --set log.dir=bad --set offload.optimizer=nvme:text.txt
expect_stderr 'text.txt: is not a directory'
expect_exit 78 "$fourfold" train run.toml --set log.dir=bad --set offload.optimizer=nvme:
expect_exit 78 "$fourfold" train run.toml --set log.dir=bad --set offload.optimizer=disk
expect_stderr 'nvme:PATH'
expect_exit 73 bash -c 'ulimit -f 8192; exec "$@"' bash "$fourfold" train run.toml --set log.dir=full \
  --set offload.optimizer=nvme:disk --set model.hidden=512
expect_stderr 'disk/(scratch space of '

# A disk that fails in the middle of a run ends it; the last checkpoint is good.
"$fourfold" train run.toml --set log.dir=failing --set offload.optimizer=nvme:disk --set train.steps=1000000 \
  --set checkpoint.every_steps=500000 --set log.every_steps=100 >"$output" 2>"$errors" </dev/null &
trainer=$!
for _ in $(seq 1200); do
  grep -q 'step 200' "$errors" && break
  sleep 0.05
done
# Emptied again and again until the program has ended: once is not enough, because a write under way may give the file
# its length back.
timeout --signal=KILL 60 python3 -c 'import os, sys, time
process = f"/proc/{sys.argv[1]}"
held = [os.open(f"{process}/fd/{fd}", os.O_RDWR) for fd in os.listdir(f"{process}/fd")
        if "fourfold-scratch" in os.readlink(f"{process}/fd/{fd}")]
try:
    while "State:\tZ" not in open(f"{process}/status").read():
        os.truncate(held[0], 0)
        time.sleep(0.005)
except (FileNotFoundError, ProcessLookupError):
    pass  # it has ended, and been waited for' "$trainer" || { complain "the run does not end" && kill -KILL "$trainer"; }
code=0
wait "$trainer" || code=$?
expect test "$code" -eq 85
expect_stderr 'the disk has failed, and the last checkpoint is good'
expect grep -q '"code": *85' failing/exit.json

expectations_met
