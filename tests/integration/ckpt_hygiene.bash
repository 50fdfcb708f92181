#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# What keeps checkpoints whole: nobody writes into a step. Usage: ckpt_hygiene.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"

for i in $(seq 100); do printf 'chapter %d, in which nothing happens twice\n' "$i"; done >text.txt
expect_exit 0 "$fourfold" data prepare --output tokens --append-eot text.txt
cat >run.toml <<'END'
[model]
layers = 2
hidden = 32
heads = 2
vocab = 257
context = 32
[train]
global_batch = 2
micro_batch = 1
steps = 4
[data]
train = ["tokens"]
[checkpoint]
every_steps = 2
keep_last = 0
[log]
dir = "run"
END
expect_exit 0 "$fourfold" train run.toml

# Nothing may be written into a step, whatever a program is told, and however the step is named: not its refusal either.
cp -r run/checkpoints before
step=run/checkpoints/step-000000004
ln -s "$step" link
for place in "$step" "$step/" "$step/." "$PWD/$step" "./$step/log" link link/deep/log; do
  expect_exit 78 "$fourfold" train run.toml --set log.dir="$place"
  expect_stderr 'lies in the checkpoint'
  expect_exit 78 "$fourfold" train run.toml --set log.dir="$place" --set mesh.dp=3
  expect_exit 78 "$fourfold" train run.toml --set log.dir="$place" --set model.no_such_key=1
done
expect_exit 78 ranks 2 train run.toml --set log.dir="$step"
expect_exit 78 ranks 2 train run.toml --set log.dir="$step" --set mesh.dp=3
fast=(--set log.dir=fast --set checkpoint.fast_every_steps=1 --set checkpoint.fast_dir="$step/fast")
expect_exit 78 "$fourfold" train run.toml "${fast[@]}"
expect_stderr 'lies in the checkpoint'
expect_exit 78 "$fourfold" train run.toml "${fast[@]}" --dry-run
expect_exit 78 "$fourfold" train run.toml --set log.dir=nvme --set offload.optimizer='"nvme:'"$step"'"'
expect_exit 78 "$fourfold" job begin run.toml --set log.dir=job --set checkpoint.dir="$step"
expect_exit 78 "$fourfold" job end run.toml --launcher-code 0 --set log.dir="$step"
expect_exit 78 "$fourfold" evaluate --checkpoint run/checkpoints --data tokens --logits "$step/l.h5"
expect_exit 78 "$fourfold" data prepare --output "$step/tok" text.txt
expect_exit 78 "$fourfold" report run --output "$step/r.html"
expect_exit 78 "$fourfold" plan --schedule 1f1b --stages 2 --micro-batches 4 --svg "$step/p.svg"
expect_exit 78 "$fourfold" ckpt gc "$step"
expect_stderr 'the one it lies in'
expect_exit 78 "$fourfold" ckpt gc link/ --dry-run
expect_exit 78 "$fourfold" ckpt reshard run/checkpoints "$step/sub" --to dp=1 --dry-run
expect_exit 78 "$fourfold" ckpt export --format hf run/checkpoints "$step/hf" --dry-run
expect_exit 0 "$fourfold" ckpt export --format hf run/checkpoints hf
expect_exit 78 "$fourfold" ckpt import --format hf hf "$step/sub" --dry-run
expect diff -r before run/checkpoints

expectations_met
