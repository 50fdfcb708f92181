#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# What a run tells: wrong run files, the effective configuration, and every file of the run directory. Usage:
# train_reports.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"

prepare_text 400
cat >run.toml <<'END'
[model]
layers = 1
hidden = 16
heads = 2
vocab = 257
context = 32
[train]
global_batch = 4
micro_batch = 2
steps = 10
eval_every_steps = 5
eval_batches = 1
[optim]
momentum = 0.5
[data]
train = ["tokens"]
validation = ["tokens"]
[log]
dir = "run"
every_steps = 4
END

# Wrong run files: one message, code 78, nothing made.
expect_exit 78 "$fourfold" train absent.toml
expect_stderr "cannot read the run file absent.toml"
printf '[train]\nglobal_bacth = 4\nsteps = "ten"\n[mesh]\nzero = 4\n' >wrong.toml
expect_exit 78 "$fourfold" train wrong.toml
expect_stderr 'wrong.toml:2:1: unknown key "global_bacth" in [train]; did you mean "global_batch"?'
expect_stderr 'wrong.toml:3:1: train.steps = "ten" is not an integer'
expect_stderr 'wrong.toml:5:1: mesh.zero = 4 is not an integer'
expect_exit 78 "$fourfold" train run.toml --set model.heads=3
expect_stderr '--set: model.heads = 3 does not divide model.hidden = 16'
expect_exit 78 "$fourfold" train run.toml --set train.micro_batch=3
expect_stderr 'set it to 2 or 4, or train.global_batch to 3 or 6'
expect test ! -e run

# The effective configuration is a run file of its own.
expect_exit 0 "$fourfold" train run.toml --set optim.lr=1e-3 --print-config
expect_stdout "# run.toml:2"
expect_stdout "# --set"
cp "$output" printed.toml
expect_exit 0 "$fourfold" train printed.toml --print-config
expect cmp <(sed 's/ *#.*//' printed.toml) <(sed 's/ *#.*//' "$output")

# A run, and the same run gone on with.
expect_exit 0 "$fourfold" train run.toml
expect_stderr "warning: run.toml:14:1: optim.momentum has no effect"
expect_stderr " step 8/10 80.0% loss "
expect_stderr " step 10 validation loss "
expect_exit 0 "$fourfold" train run.toml --set train.steps=14 --allow-change optim.decay_steps --progress none
expect test "$(find run -maxdepth 1 -mindepth 1 -printf "%f\n" | sed 's/tfevents.*/tfevents/' | sort -u | tr '\n' ' ')" = \
  "FINISHED checkpoints config.toml events.out.tfevents exit.json metrics.jsonl report.html status.json "
expect test "$(find run -name 'events*' | wc -l)" -eq 2
expect python3 - <<'END'
import json
import xml.etree.ElementTree as ElementTree

lines = [json.loads(line) for line in open("run/metrics.jsonl")]
steps = [line["step"] for line in lines if line["event"] == "step"]
assert steps == [1, 4, 8, 10, 11, 12, 14], steps
assert [line["step"] for line in lines if line["event"] == "eval"] == [5, 10, 14]
assert [line["from_step"] for line in lines if line["event"] in ("start", "resume")] == [0, 10]
last = json.load(open("run/exit.json"))
assert (last["code"], last["step"], last["retry"]) == (0, 14, False), last
assert json.load(open("run/status.json"))["state"] == "ended"
page = ElementTree.parse("run/report.html")
assert len(page.findall(".//svg")) == 6
END

# The report can be made again, and of several runs.
rm run/report.html
expect_exit 0 "$fourfold" report run
expect_stdout run/report.html
expect_exit 0 "$fourfold" report run run --output both.html
expect test -s both.html
expect_exit 78 "$fourfold" report .
expect_stderr "metrics.jsonl"

# Its own files are replaced, those of others are not.
expect_exit 0 "$fourfold" report run run --output both.html
echo mine >notes.html
# Nor is one run's page replaced by that of another.
cp -r run second
expect_exit 78 "$fourfold" report second --output run/report.html
expect_stderr 'run/report.html: is the place of a file of the run whose directory run is'
expect_exit 78 "$fourfold" report run second -o run/report.html
expect_exit 0 "$fourfold" report run -o run/report.html
rm -r second
expect_exit 78 "$fourfold" report run --output notes.html
expect_stderr "not made by \`fourfold report\`"
expect test "$(cat notes.html)" = mine

expectations_met
