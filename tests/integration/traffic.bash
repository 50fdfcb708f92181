#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Compressed gradients and local replicas over real MPI ranks: what they send, restarts on other meshes, and the losses
# of the run that does neither. Usage: traffic.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"

prepare_text 200
cat >run.toml <<'END'
[model]
family = "llama"
layers = 4
hidden = 96
heads = 6
kv_heads = 2
ffn = 200
vocab = 257
context = 24
[train]
global_batch = 8
micro_batch = 1
steps = 20
[optim]
lr = 2e-3
decay_steps = 30
[data]
train = ["tokens"]
[checkpoint]
every_steps = 10
END

# run NAME RANKS [KEY=VALUE...]: into the folder NAME
run() {
  local name=$1 ranks=$2 sets=()
  shift 2
  for setting in "$@"; do sets+=(--set "$setting"); done
  expect_exit 0 "$MPIEXEC" -n "$ranks" "$fourfold" train run.toml --set "log.dir=\"$name\"" "${sets[@]}"
}
# ask EXPRESSION: Python that must be true; a(NAME, EVENT) are the records of a run.
ask() {
  expect python3 -c 'import json, sys
def a(name, event):
    return [record for record in map(json.loads, open(f"{name}/metrics.jsonl")) if record["event"] == event]
def losses(name):
    return [record["loss"] for record in a(name, "step")]
def apart(one, other):
    return max(abs(x - y) / y for x, y in zip(losses(one), losses(other), strict=True))
def sent(name):
    return a(name, "start")[0]["data_plane_bytes"]
assert eval(sys.argv[1]), sys.argv[1]' "$1"
}

run plain 4
expect_stderr 'MB sent per rank and step, mesh.dp_compress = "none"'
for kind in bf16 int8 lowrank:2; do
  run "$kind" 4 "mesh.dp_compress=$kind"
  expect_stderr "mesh.dp_compress = \"$kind\""
  ask "losses('$kind') != losses('plain')"
done
ask "apart('bf16', 'plain') < 0.01 and apart('int8', 'plain') < 0.05"
ask "losses('lowrank:2')[-1] < 0.6 * losses('lowrank:2')[0]"
ask "sent('bf16') < 0.51 * sent('plain') and sent('int8') <= 0.27 * sent('plain') and sent('lowrank:2') < 0.2 * sent('plain')"

# A compressed run goes on with its errors on other meshes; stopped and started on its own it has the same bits.
run int8 8 mesh.dp_compress=int8 mesh.tp=2 mesh.pp=2 mesh.zero=1 train.steps=24
expect_stderr 'saved on mesh pp1 dp4 cp1 tp1, now pp2 dp2 cp1 tp2'
run int8 4 train.steps=28
expect_stderr 'error_feedback of the checkpoint is of no use to this run'
ask "len(losses('int8')) == 28 and losses('int8')[-1] < losses('int8')[9]"
run parts 4 mesh.dp_compress=lowrank:2 train.steps=10
run parts 4 mesh.dp_compress=lowrank:2
ask "losses('parts') == losses('lowrank:2')"
run alone 1 mesh.dp_compress=int8 train.steps=2
expect_stderr 'mesh.dp_compress has no effect'

# Replicas that meet every five steps, of one rank and of two; a restart with fewer of them.
local=(mesh.dp_mode=local mesh.average_every=5 optim.outer=nesterov optim.outer_lr=0.7 optim.outer_momentum=0.5)
run local 4 "${local[@]}"
expect_stderr '4 replicas train by themselves'
run local.tp2 8 "${local[@]}" mesh.tp=2
ask "apart('local.tp2', 'local') < 1e-5 and apart('local', 'plain') > 1e-3"
ask "sent('local') <= 0.201 * sent('plain') and losses('local')[-1] < 0.8 * losses('local')[0]"
# Stopped in the middle of a round and started again it has the same bits, wherever its state lies.
local+=(checkpoint.every_steps=4)
run local.whole 4 "${local[@]}"
run local.parts 4 "${local[@]}" train.steps=8 offload.optimizer=cpu
run local.parts 4 "${local[@]}" train.steps=12 offload.optimizer=nvme:.
run local.parts 4 "${local[@]}"
expect_stderr 'resumed from local.parts/checkpoints/step-000000012'
ask "losses('local.parts') == losses('local.whole')"
expect cmp <(grep identity local.whole/checkpoints/step-000000020/MANIFEST.json) \
  <(grep identity local.parts/checkpoints/step-000000020/MANIFEST.json)
# With fewer replicas, or as one, or all together again, a run goes on from there.
run local.whole 2 "${local[@]}" train.steps=24
expect_stderr 'saved on mesh pp1 dp4 cp1 tp1, now pp1 dp2 cp1 tp1'
run local.whole 1 "${local[@]}" train.steps=26
expect_stderr 'mesh.dp_mode = "local" has no effect'
expect_stderr 'outer_momentum of the checkpoint is of no use to this run'
together=(--set log.dir=local.whole --set train.steps=28)
for setting in "${local[@]}" mesh.dp_mode=sync; do together+=(--set "$setting"); done
expect_exit 78 "$MPIEXEC" -n 2 "$fourfold" train run.toml "${together[@]}"
expect_stderr 'mesh.dp_mode: "local" -> "sync"  (allow it with --allow-change=mesh.dp_mode)'
expect_exit 0 "$MPIEXEC" -n 2 "$fourfold" train run.toml "${together[@]}" --allow-change=mesh.dp_mode
ask "len(losses('local.whole')) == 28 and losses('local.whole')[-1] < losses('local.whole')[9]"

# What is frozen is neither averaged nor moved by the outer step, and has no state: three replicas have it as one rank does.
frozen=(mesh.dp_mode=local mesh.average_every=1 optim.outer=nesterov 'model.frozen=["embedding.*", "layers.0.*"]' train.global_batch=3
  train.steps=4)
run frozen 3 "${frozen[@]}"
run frozen.one 1 "${frozen[@]}"
for name in frozen frozen.one; do
  expect_exit 0 "$fourfold" ckpt info "$name/checkpoints/step-000000004" --json
  python3 -c 'import json, sys
for tensor in json.load(open(sys.argv[1]))["tensors"]:
    if tensor["name"].startswith(("embedding.", "layers.0.")):
        print(tensor["name"], tensor["state"], tensor["digest"])' "$output" >"$name.digests"
done
expect test -s frozen.digests
expect cmp frozen.digests frozen.one.digests
# What does not go together is refused with the reason, and planned as it is run.
expect_exit 78 "$MPIEXEC" -n 2 "$fourfold" train run.toml --set mesh.dp_compress=int8 --set mesh.zero=2
expect_stderr 'set mesh.zero to 1, or mesh.dp_reduce to "step"'
expect_exit 78 "$MPIEXEC" -n 2 "$fourfold" train run.toml --set mesh.dp_compress=int8 --set mesh.dp_mode=local
expect_stderr 'no gradients travel over the dp axis'
expect_exit 78 "$MPIEXEC" -n 4 "$fourfold" train run.toml --set mesh.dp_mode=local --set mesh.zero=1 --set mesh.zero_group=4
expect_stderr 'mesh.zero_group = 4 does not divide mesh.cp = 1'
expect_exit 0 "$fourfold" plan run.toml --ranks 4 --set mesh.dp_compress=int8
expect_exit 0 "$fourfold" plan run.toml --ranks 4 --set mesh.dp_mode=local --set optim.outer=nesterov
expectations_met
