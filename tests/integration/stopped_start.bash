#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# A start that stands still (SIGSTOP) at any of its calls that change log.dir, or at any moment, until another has taken the run
# over: when it goes on, no file of the run changes. Usage: stopped_start.bash BUILD_DIR SHIM [CALLS MOMENTS SEED]
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
script=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/stopped_start.py
begin "$1"
program=$1/bin/fourfold-train shim=$2 calls=${3-24} moments=${4-12} seed=${5-$RANDOM}
export MPIEXEC

prepare_text 300 --validation-fraction 0.1
cat >run.toml <<END
[model]
layers = 1
hidden = 32
heads = 2
vocab = 257
context = 32
[train]
global_batch = 4
micro_batch = 1
steps = 12
eval_every_steps = 4
eval_batches = 4
[data]
train = ["$work/tokens_train"]
validation = ["$work/tokens_val"]
[checkpoint]
every_steps = 4
keep_last = 2
[log]
tensorboard = true
report = true
END

# Of one rank, at calls of its choice: all files of log.dir, and of checkpoint.dir, which lies in it. Then of two, both at once.
for how in "calls $calls" "moments $moments"; do
  mkdir "${how% *}"
  # shellcheck disable=SC2086  # two words
  expect_exit 0 env -C "${how% *}" python3 "$script" "$program" "$shim" "$work/run.toml" $how "$seed"
  cat "$output"
done

expectations_met
