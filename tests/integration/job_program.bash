#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Two jobs of one run that begin at the same time: the one that is slower ends with 78, whatever its launcher made of that,
# and is not to be started again. Usage: overtaken.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"

for i in $(seq 50); do printf 'verse %d: the quick brown fox jumps over the lazy dog\n' "$i"; done >text.txt
expect_exit 0 "$fourfold" data prepare --output tokens --append-eot text.txt
cat >run.toml <<'END'
[model]
layers = 1
hidden = 32
heads = 2
vocab = 257
context = 32
[train]
global_batch = 4
steps = 1000000
[data]
train = ["tokens"]
[log]
dir = "run"
END
is_running() { grep -qs '"reason": *"running"' run/exit.json && grep -qs '"step":5,' run/metrics.jsonl; }

SLURM_JOB_ID=31 expect_exit 0 "$fourfold" job begin run.toml
SLURM_JOB_ID=32 "$fourfold" train run.toml --progress none >train.log 2>&1 &
winner=$!
for _ in $(seq 600); do
  is_running && break
  sleep 0.1
done
expect is_running
cp run/exit.json before.json
SLURM_JOB_ID=31 expect_exit 78 "$fourfold" job end run.toml --launcher-code 137
expect_stdout 'stop'
expect_stderr 'job 32 trains this run'
expect cmp run/exit.json before.json # the winner's
expect python3 -c 'import json
end = [json.loads(line) for line in open("run/attempts.jsonl")][-1]
assert end["job"] == "31" and end["code"] == 78 and end["retry"] is False and end["step"] is None, end'
kill -USR2 "$winner"
wait "$winner"
[[ $? -eq 75 ]] || complain "the winner did not save and stop: $(cat train.log)"
# Nor if the winner has ended before the other is asked how it ended.
SLURM_JOB_ID=31 expect_exit 78 "$fourfold" job end run.toml --launcher-code 143
expect_stdout 'stop'
expectations_met
