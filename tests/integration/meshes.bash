#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The same global batch over data-, tensor- and context-parallel meshes of real MPI ranks: 20 steps with the losses of
# one rank. Usage: meshes.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"

prepare_text 200
cat >run.toml <<'END'
[model]
family = "llama"
layers = 4
hidden = 48
heads = 6
kv_heads = 2
ffn = 80
vocab = 257
context = 24
[train]
global_batch = 8
micro_batch = 1
steps = 20
[optim]
lr = 1e-2
[data]
train = ["tokens"]
[checkpoint]
every_steps = 0
END

# run NAME RANKS [KEY=VALUE...]: into the folder NAME
run() {
  local name=$1 ranks=$2 sets=()
  shift 2
  for setting in "$@"; do sets+=(--set "$setting"); done
  expect_exit 0 "$MPIEXEC" -n "$ranks" "$fourfold" train run.toml --set "log.dir=\"$name\"" --set mesh.dp_bucket_mb=0.02 \
    "${sets[@]}"
}
for ranks in 1 2 4 8; do run "dp$ranks" "$ranks"; done
run tp2 2 mesh.tp=2
run dp4.tp2 8 mesh.tp=2
run tp6 6 mesh.tp=6
run cp2.ring 2 mesh.cp=2
run cp3.ring 3 mesh.cp=3
run cp4.allgather 4 mesh.cp=4 mesh.context_mode=allgather
run cp6.ulysses 6 mesh.cp=6 mesh.context_mode=ulysses # two key/value heads, each shared by three ranks
run dp2.cp2.tp2 8 mesh.cp=2 mesh.tp=2
run dp2.cp2.ulysses 4 mesh.cp=2 mesh.context_mode=ulysses
run pp2 2 mesh.pp=2
run pp3.gpipe 3 mesh.pp=3 mesh.schedule=gpipe # four layers on three stages
run pp4.zb-h1 4 mesh.pp=4 mesh.schedule=zb-h1
run pp2.tp2.zb-v 4 mesh.pp=2 mesh.tp=2 mesh.schedule=zb-v
run dp2.pp2.interleaved 4 mesh.pp=2 mesh.schedule=interleaved
run dp2.pp2.tp2 8 mesh.pp=2 mesh.tp=2
run pp2.cp2.tp2.selective 8 mesh.pp=2 mesh.cp=2 mesh.tp=2 train.recompute=selective
expect_exit 0 "$fourfold" plan --schedule zb-h1 --stages 2 --micro-batches 8 --csv mine.csv
run pp2.csv 2 mesh.pp=2 mesh.schedule=mine.csv

# Prints the largest relative difference to one rank, and fails when it is above the bar.
compare() {
  python3 -c 'import json
def losses(name):
    records = map(json.loads, open(f"{name}/metrics.jsonl"))
    return [record["loss"] for record in records if record["event"] == "step"]
one = losses("dp1")
assert len(one) == 20 and one[-1] < 0.8 * one[0], one
data_parallel = ("dp2", "dp4", "dp8")
others = ("tp2", "dp4.tp2", "tp6", "cp2.ring", "cp3.ring", "cp4.allgather", "cp6.ulysses", "dp2.cp2.tp2", "dp2.cp2.ulysses",
          "pp2", "pp3.gpipe", "pp4.zb-h1", "pp2.tp2.zb-v", "dp2.pp2.interleaved", "dp2.pp2.tp2", "pp2.cp2.tp2.selective", "pp2.csv")
for name in data_parallel + others:
    other = losses(name)
    assert len(other) == 20
    worst = max(abs(a - b) / b for a, b in zip(other, one))
    print(f"{name}: within {worst:.1e} of one rank")
    assert worst <= (1e-6 if name in data_parallel else 1e-5)'
}
compare || complain "losses depend on the mesh"

# What a context-parallel run saved goes on elsewhere, is measured and sampled from as any other.
expect_exit 0 "$MPIEXEC" -n 2 "$fourfold" train run.toml --set 'log.dir="cp4.allgather"' --set mesh.tp=2 --set train.steps=22 \
  --set optim.decay_steps=20
expect_stderr 'saved on mesh pp1 dp1 cp4 tp1, now pp1 dp1 cp1 tp2'
evaluation() { "$MPIEXEC" -n 4 "$fourfold" evaluate --checkpoint cp2.ring/checkpoints --data tokens --samples 8 "$@"; }
loss_of() { evaluation "$@" | sed -n 's/^loss *\([0-9.]*\) .*/\1/p'; }
expect python3 -c 'import sys; a, b = map(float, sys.argv[1:]); assert a > 0 and abs(a - b) <= 1e-6 * b' \
  "$(loss_of)" "$(loss_of --cp 2)"
expect_exit 78 evaluation --cp 2 --logits logits.h5
expect_stderr '--logits does not go with --cp'
expect_exit 0 "$fourfold" sample --checkpoint cp2.ring/checkpoints --prompt chap --tokens 5
expect_stdout chap

# What a pipeline saved, optimizer included, goes on without one and the other way round; validation goes through it.
expect_exit 0 "$MPIEXEC" -n 2 "$fourfold" train run.toml --set 'log.dir="pp2.tp2.zb-v"' --set train.steps=22 \
  --set optim.decay_steps=20
expect_stderr 'saved on mesh pp2 dp1 cp1 tp2, now pp1 dp2 cp1 tp1'
expect_exit 0 "$MPIEXEC" -n 4 "$fourfold" train run.toml --set 'log.dir="dp2"' --set train.steps=22 --set optim.decay_steps=20 \
  --set mesh.pp=4 --set 'data.validation=["tokens"]' --set train.eval_batches=0
expect_stderr 'saved on mesh pp1 dp2 cp1 tp1, now pp4 dp1 cp1 tp1'
expect python3 -c 'import json
def last(name, event):
    return [record["loss"] for record in map(json.loads, open(f"{name}/metrics.jsonl")) if record["event"] == event][-1]
a, b = last("pp2.tp2.zb-v", "step"), last("dp2", "step")
assert abs(a - b) <= 1e-5 * b, (a, b)
last("dp2", "eval")'
expect_exit 0 "$MPIEXEC" -n 1 "$fourfold" evaluate --checkpoint dp2/checkpoints --data tokens --json
expect python3 -c 'import json, sys
one = json.load(open(sys.argv[1]))["loss"]
events = map(json.loads, open("dp2/metrics.jsonl"))
piped = [record["loss"] for record in events if record["event"] == "eval"][-1]
assert abs(one - piped) <= 1e-6 * one, (one, piped)' "$output"

# Pipelines that cannot be are refused before anything is taken.
expect_exit 78 "$MPIEXEC" -n 5 "$fourfold" train run.toml --set log.dir=none --set mesh.pp=5
expect_stderr 'set mesh.pp to 4 or less'
expect_exit 78 "$MPIEXEC" -n 2 "$fourfold" train run.toml --set log.dir=none --set mesh.pp=2 --set mesh.schedule=1f1bb
expect_stderr 'did you mean "1f1b"?'
expect_exit 78 "$MPIEXEC" -n 4 "$fourfold" train run.toml --set log.dir=none --set mesh.pp=4 --set mesh.schedule=interleaved
expect_stderr 'mesh.chunks'
mkfifo pipe.csv
mkdir folder.csv
truncate -s 1G large.csv
for file in pipe.csv folder.csv large.csv; do
  expect_exit 78 "$fourfold" plan --schedule "$file"
  expect_stderr "--schedule $file cannot be read"
done
# A pipeline's run file goes on without a pipeline.
expect_exit 0 "$MPIEXEC" -n 1 "$fourfold" train run.toml --set 'log.dir="dp1"' --set mesh.pp=1 --set 'mesh.stage_layers=[3,1]' \
  --set mesh.schedule=mine.csv
expect_stderr 'mesh.stage_layers has no effect'
expect_exit 78 "$MPIEXEC" -n 2 "$fourfold" train run.toml --set log.dir=none --set mesh.pp=2 --set mesh.schedule=pipe.csv
expect_stderr 'nor a file that can be read'
printf 'F0,F1,B0\nF0,B0,F1,B1\n' >wrong.csv
expect_exit 78 "$MPIEXEC" -n 2 "$fourfold" train run.toml --set log.dir=none --set mesh.pp=2 --set mesh.schedule=wrong.csv \
  --set train.global_batch=2
expect_stderr 'mesh.schedule'
expect_stderr 'wrong.csv'

# Contexts and heads that do not fit are refused with what does.
expect_exit 78 "$MPIEXEC" -n 5 "$fourfold" train run.toml --set log.dir=none --set mesh.cp=5
expect_stderr 'mesh.cp = 5 does not fit model.context = 24'
expect_stderr 'set mesh.cp to 4 or 6, or model.context to 20 or 30'
expect_exit 78 "$MPIEXEC" -n 3 "$fourfold" train run.toml --set log.dir=none --set mesh.cp=3 --set mesh.context_mode=ulysses
expect_stderr 'mesh.cp = 3 does not fit model.heads = 6 with model.kv_heads = 2'
expect_stderr 'set mesh.cp to 2 or 6'

# Six query heads on two key/value heads cannot be dealt to four ranks.
expect_exit 78 "$MPIEXEC" -n 4 "$fourfold" train run.toml --set log.dir=none --set mesh.tp=4
expect_stderr 'mesh.tp = 4 does not fit model.heads = 6 with model.kv_heads = 2'
expect_stderr 'set it to one of 1, 2, 6'
expectations_met
