#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# What keeps checkpoints whole: nobody writes into a step, the last intact one is never removed, and one that is damaged
# or just being removed is told for what it is. Usage: ckpt_hygiene.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
build=$1
begin "$build"

prepare_text 100
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
flip() { # flip FILE BYTE
  python3 -c 'import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    byte = file.read(1)
    file.seek(int(sys.argv[2]))
    file.write(bytes([byte[0] ^ 4]))' "$@"
}

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
fast=(--set log.dir=fast --set checkpoint.node_local_every_steps=1 --set checkpoint.node_local_dir="$step/fast")
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

# Of a step whose payload has one bad byte manifest, index and sizes hold: the older one, which loads, stays.
cp -r run/checkpoints rotten
flip "$(find rotten/step-000000004 -name 'shard-*')" 9000
expect_exit 0 "$fourfold" ckpt verify rotten
expect_exit 0 "$fourfold" ckpt gc rotten --keep-last 1 --json --dry-run
expect python3 -c 'import json, sys
found = json.load(open(sys.argv[1]))
assert (found["steps"], found["newest_intact"], found["spared"]) == ([], 2, 2), found' "$output"
expect_exit 0 "$fourfold" ckpt gc rotten --keep-last 1
expect_stdout 'step 2 stays: it is the newest one that is intact'
expect_stderr 'step-000000004: DAMAGED'
expect_exit 0 "$fourfold" train run.toml --set log.dir=on --set checkpoint.dir=rotten
expect_stderr 'resumed from rotten/step-000000002'
cp -r before hopeless
for shard in hopeless/step-*/shard-*; do flip "$shard" 9000; done
expect_exit 65 "$fourfold" ckpt gc hopeless --keep-last 1
expect_stderr 'no step there is intact'
expect test -d hopeless/step-000000002 -a -d hopeless/step-000000004

# A step without a manifest, or with one that is none, is damaged; the others are looked at all the same.
cp -r before holes
rm holes/step-000000002/MANIFEST.json
for deep in '' --deep; do
  # shellcheck disable=SC2086  # nothing or an option
  expect_exit 65 "$fourfold" ckpt verify $deep holes
  expect_stdout 'holes/step-000000002: DAMAGED'
  expect_stdout 'holes/step-000000004: '
  expect_no_stdout 'name a step-NNNNNNNNN folder'
done
mkdir holes/step-000000002/MANIFEST.json
expect_exit 65 "$fourfold" ckpt verify holes --json
expect python3 -c 'import json, sys
assert [step["intact"] for step in json.load(open(sys.argv[1]))] == [False, True]' "$output"

# What retention removes while it is looked at is not damaged.
expect_exit 0 "$fourfold" train run.toml --set log.dir=many --set checkpoint.every_steps=1 --set train.steps=40
rounds=0
until [[ $rounds -ge 30 ]] || grep -q 'was removed meanwhile' "$output"; do
  rm -rf live
  cp -r many/checkpoints live
  (
    sleep "0.0$((rounds % 10))"
    for folder in $(find live -name 'step-*' -maxdepth 1 | sort -r | head -n 39); do
      mv "$folder" live/.trash-0123456789abcdef
      rm -r live/.trash-0123456789abcdef
    done
  ) &
  expect_exit 0 "$fourfold" ckpt verify --deep live
  expect_no_stdout DAMAGED
  wait
  rounds=$((rounds + 1))
done
expect_stdout 'was removed meanwhile'

# Where there is no room for the lease gc makes room, unless another has one; whichever call it is that fails.
shim=$(find "$build/tests" -name 'libcrash_shim.so' | head -n 1)
if [[ -n $shim ]]; then
  for call in 1 2 3 4; do
    rm -rf full
    cp -r before full
    full=(env LD_PRELOAD="$shim" FOURFOLD_CRASH_UNDER="$PWD/full/.lease" FOURFOLD_CRASH_AT="$call" FOURFOLD_CRASH_HOW=28)
    expect_exit 0 "${full[@]}" "$fourfold" ckpt gc "$PWD/full" --keep-last 1
    [[ $call -ne 1 ]] || expect_stderr 'no lease can be taken'
    expect test "$(cd full && echo ./* .lease*)" = './LATEST ./step-000000004 .lease*'
  done
  cp -r before held
  echo 'fourfold-lease 1 fedcba9876543210 elsewhere - 7 - 0 3' >held/.lease
  full=(env LD_PRELOAD="$shim" FOURFOLD_CRASH_UNDER="$PWD/held/.lease-" FOURFOLD_CRASH_AT=1 FOURFOLD_CRASH_HOW=28)
  expect_exit 78 "${full[@]}" "$fourfold" ckpt gc "$PWD/held" --keep-last 1
  expect_stderr 'process 7 on elsewhere may be running here'
  expect test -d held/step-000000002
fi

expectations_met
