#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Training data that are edited between two starts, far from the windows that every start looks at; copied; touched. Usage:
# edited_data.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"

prepare_text 8000 # 200,000 tokens and more: windows are 13,000 apart
cat >run.toml <<'END'
[model]
layers = 1
hidden = 32
heads = 2
vocab = 257
context = 32
[train]
global_batch = 4
micro_batch = 1
steps = 2
[data]
train = ["tokens"]
[log]
dir = "run"
END
steps=2
# trains_on CODE RUN OPTION...: two steps more.
trains_on() {
  local code=$1 run=$2
  shift 2
  expect_exit "$code" "$fourfold" train run.toml --set log.dir="$run" --set train.steps=$((steps + 2)) "$@"
  [[ $code -ne 0 ]] || steps=$((steps + 2))
}
# A byte of a token that is in no window, changed in place.
edit() { printf '%s' "$2" | dd of="$1" bs=1 seek=13000 conv=notrunc status=none; }
expect test "$(stat -c %s tokens.bin)" -gt 400000

expect_exit 0 "$fourfold" train run.toml
trains_on 0 run
! grep -q 'written to since' "$errors" || complain "a file that nobody wrote to is read whole"

touch tokens.bin
trains_on 0 run
expect_stderr 'training files that were written to since the checkpoint: 1 MB read, and what is in them is what was prepared'
trains_on 0 run # the checkpoint has the new time
! grep -q 'written to since' "$errors" || complain "the new time is not kept"
cp tokens.bin copy && mv copy tokens.bin
trains_on 0 run
expect_stderr 'what is in them is what was prepared'

# An edit; then the record is gone, which cannot hide it: the checkpoint has its digest.
cp -p tokens.bin whole.bin
edit tokens.bin Z
expect test "$(cmp -l whole.bin tokens.bin | wc -l)" -eq 1
trains_on 78 run
expect_stderr 'tokens.bin has as many tokens as then, but others'
expect_stderr '--allow-change=data.train'
mv tokens.json record.json
trains_on 78 run
expect_stderr 'tokens.bin has as many tokens as then, but others'
mv record.json tokens.json
trains_on 0 run --allow-change=data.train
expect_stderr 'changed since the checkpoint: tokens.bin has as many tokens as then, but others'

# What no digest tells of is said: files without a record.
cp -p whole.bin tokens.bin
mv tokens.json record.json
steps=0
trains_on 0 foreign
edit tokens.bin Z
trains_on 0 foreign
expect_stderr 'tokens.bin: written to since the checkpoint, and compared with what was trained on at 16 places alone'

expectations_met
