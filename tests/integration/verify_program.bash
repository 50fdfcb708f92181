#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# `fourfold verify` as a user runs it: meshes that agree, one that does not, and wrong command lines.
# Usage: verify_program.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"

prepare_text 100
cat >run.toml <<'END'
[model]
family = "llama"
layers = 2
hidden = 48
heads = 6
kv_heads = 2
vocab = 257
context = 24
dropout = 0.1
[train]
global_batch = 8
micro_batch = 2
[optim]
lr = 1e-3
[data]
train = ["tokens"]
END
verify() { "$fourfold" verify run.toml "$@"; }

for threads in x 0 2x 100000; do
  KOKKOS_NUM_THREADS=$threads expect_exit 78 verify --mesh dp=1 --mesh dp=2
  expect_stderr "KOKKOS_NUM_THREADS is \"$threads\""
done
expect_exit 0 verify --help
expect_stdout 'MESHES'
expect_exit 0 verify --mesh dp=1 --mesh tp=2 --mesh dp=2,tp=6 --mesh dp=4,train.micro_batch=1 --steps 3
expect_stdout 'reference dp=1: loss '
expect_stdout ' at step 3'
[ "$(grep -c 'same bits  agree .* passed$' "$output")" = 3 ] || complain "three meshes should have passed: $(cat "$output")"
expect_exit 0 verify --mesh dp=1 --mesh dp=1,train.recompute=full --mesh pp=2,cp=2,tp=2,schedule=1f1b,stage_layers=[2,0] --json
python3 -c 'import json, sys
full, all_axes = json.load(open(sys.argv[1]))["meshes"]
assert full["loss_error"] == full["gradient_error"] == full["rounding_error"] == full["weight_error"] == 0, full
assert 0 < full["product_error"] < 8 and full["checked_products"] > 5 * 2 * 4, full
assert full["steps"] == 5 and full["differing_steps"] == [] and full["skipped_steps"] == 0, full
assert all_axes["passed"] and all_axes["gradient_error"] > 0, all_axes' "$output" || complain "recompute or four axes differ"
expect_exit 1 verify --mesh dp=1 --mesh tp=2,train.seed=5 --mesh tp=2
grep -q '^tp=2,train.seed=5 *DIFFER .* FAILED$' "$output" || complain 'another seed passed'
expect_stdout 'the initial bits of embedding.token.weight differ'
grep -q '^tp=2 .* passed$' "$output" || complain 'tp=2 did not pass'
expect_exit 1 verify --mesh dp=1 --mesh dp=1,optim.clip_norm=0.01,optim.weight_decay=9 --json --steps 2
python3 -c 'import json, sys
report = json.load(open(sys.argv[1]))
assert len(report["reference"]["losses"]) == 2, report
(mesh,) = report["meshes"]
assert not mesh["passed"] and mesh["same_initial_weights"] and mesh["weight_error"] > 0.1, mesh
assert mesh["loss_error"] == mesh["gradient_error"] == 0, mesh  # the reference starts from its weights
assert mesh["steps"] == 2 and mesh["differing_steps"] == [1, 2], mesh
assert mesh["first_difference"].startswith("step 1: the weight of "), mesh' "$output" || complain "the JSON is not what it should be"
if [ -e runs ] || [ -e checkpoints ]; then complain "verify left files: $(ls)"; fi

expect_exit 64 verify --mesh dp=1
expect_stderr 'one --mesh is nothing to compare'
expect_exit 78 ranks 2 verify run.toml --mesh dp=1 --mesh dp=2 # each process would do all of it
expect_stderr '2 processes were started'
expect_exit 78 verify --mesh dp=1 --mesh 2
expect_stderr '--mesh 2: "2" has no value'
expect_exit 78 verify --mesh dp=1 --mesh tpp=2
expect_stderr 'fourfold verify: error: --mesh tpp=2: --set: unknown key "tpp" in [mesh]; did you mean "pp"?'
expect_exit 78 verify --mesh dp=1 --mesh tp=4
expect_stderr 'mesh.tp = 4 does not fit model.heads = 6'
expect_exit 78 verify --mesh dp=1 --mesh dp=3
expect_stderr 'train.global_batch = 8 does not divide among mesh.dp = 3'
expect_exit 78 verify --mesh dp=1 --mesh pp=3
expect_stderr 'set mesh.pp to 2 or less'
expect_exit 78 verify --mesh dp=1 --mesh pp=2,tp=1,pp=2
expect_stderr '--mesh pp=2,tp=1,pp=2: mesh.pp stands there twice'
expect_exit 78 verify --mesh dp=1 --mesh pp=two
expect_stderr 'mesh.pp = two is not an integer of at least 1 and at most 65536'
expect_exit 78 verify --mesh dp=1 --mesh dp=4096,train.global_batch=8192
expect_stderr 'is 4096 ranks (each is a thread of this process, and more than 256 are too many)'
expect_exit 78 verify --mesh dp=1 --mesh pp=65536
expect_stderr 'is 65536 ranks'
# f16: gradients that overflow at every step are no proof of anything.
expect_exit 78 verify --mesh dp=1,train.precision=f16,train.loss_scale_initial=1099511627776 \
  --mesh dp=2,train.precision=f16,train.loss_scale_initial=1099511627776 --steps 2
expect_stderr 'all 2 steps of the reference overflow f16'
# What diverges is no verdict about meshes.
expect_exit 65 verify --set optim.lr=1e10 --set optim.clip_norm=0 --set optim.name=sgd --mesh dp=1 --mesh dp=2
expect_stderr 'training has diverged'
expect_exit 65 verify --set train.precision=f16 --set train.loss_scale=1099511627776 --mesh dp=1 --mesh tp=2
expect_stderr 'train.loss_scale'
# 16 bits: sound meshes pass, and what is wrong does not.
for precision in bf16 f16; do
  expect_exit 0 verify --set train.precision=$precision --mesh dp=1 --mesh dp=2,tp=2 --mesh pp=2,cp=2,schedule=zb-h1
  expect_exit 1 verify --set train.precision=$precision --mesh dp=1 --mesh dp=2,train.seed=5
  expect_exit 1 verify --set train.precision=$precision --mesh dp=1 --mesh dp=2 --gradient-tolerance 1e-9
done
# A mesh in 16 bits leaves the tolerances of the others what they are: a slightly other model fails beside it.
expect_exit 1 verify --mesh dp=1 --mesh dp=2,train.precision=bf16 --mesh dp=2,model.norm_epsilon=1.01e-5 --steps 20 --json
python3 -c 'import json, sys
coarse, other = json.load(open(sys.argv[1]))["meshes"]
noise = (1024 / (8 * 24)) ** 0.5  # of means over so few tokens
assert coarse["passed"] and abs(coarse["tolerances"]["gradient"] / (0.1 * noise) - 1) < 1e-9, coarse
wanted = {"loss": 1e-5 * noise, "gradient": 1e-4 * noise, "rounding": 300, "weight": 1e-4, "product": 8}
assert other["tolerances"].keys() == wanted.keys(), other
assert all(abs(other["tolerances"][key] / value - 1) < 1e-9 for key, value in wanted.items()), other
assert other["differing_steps"] == list(range(1, 21)), other' "$output" || complain "tolerances are not those of each mesh"
# Steps that prove nothing about gradients are said.
expect_exit 0 verify --set train.precision=f16 --set train.loss_scale_initial=1073741824 --mesh dp=1 --mesh dp=2 --steps 12
grep -q 'not proven: the gradients of [0-9]* of 12 steps, which overflow f16 on both' "$output" || complain 'skipped steps are not said'
# Another model is nothing to compare with.
expect_exit 78 verify --mesh dp=1 --mesh dp=1,model.layers=3
expect_stderr 'has another model than the reference --mesh dp=1'
# It ends by a signal that asks for it, also by one that a library has taken (UCX: SIGHUP), and lives on under nohup.
begin_long() { # begin_long COMMAND...
  rm -f long.out # what the one before has said is not waited for
  "$@" run.toml --mesh dp=1 --mesh dp=2 --steps 100000 --progress plain >long.out 2>&1 </dev/null &
  verifier=$!
  for _ in $(seq 600); do
    grep -qs 'steps/s' long.out && break
    sleep 0.1
  done
}
for signal in HUP:129 TERM:143; do
  begin_long "$(dirname "$fourfold")/fourfold-verify"
  kill "-${signal%:*}" "$verifier"
  wait "$verifier"
  code=$?
  [[ $code -eq ${signal#*:} ]] || complain "exit code $code, not ${signal#*:}, of a verify that got $signal"
done
begin_long nohup "$(dirname "$fourfold")/fourfold-verify"
kill -HUP "$verifier"
sleep 0.5
expect kill -TERM "$verifier" # it is there
wait "$verifier"

# State on disk, of three runs at a time.
expect_exit 0 verify --set "offload.optimizer=nvme:$PWD" --mesh dp=1 --mesh dp=2,zero=1 --steps 4
expect_exit 78 verify --mesh dp=1 --mesh dp=auto
expect_stderr 'says nothing here'
expect_exit 64 verify --mesh dp=1 --mesh tp=2 --loss-tolerance nan
expect_exit 64 verify --mesh dp=1 --mesh tp=2 --product-tolerance nan
# Every product is checked where it is made: below what rounding makes there, the first of them is named.
expect_exit 1 verify --mesh dp=1 --mesh tp=2 --product-tolerance 1e-3
expect_stderr 'the reference --mesh dp=1: step 1: rank 0: the product of layers.0.attn.q_proj/k_proj/v_proj (forward), call 1 of the step: '
expect_exit 78 verify --set mesh.dp_compress=int8 --mesh dp=1 --mesh dp=2
expect_stderr 'mesh.dp_compress = "int8" is no mesh to compare'
expect_exit 0 verify --set mesh.dp_compress=int8 --mesh dp=1 --mesh tp=2
expect_exit 78 verify --mesh dp=1 --mesh dp=2,dp_mode=local
expect_stderr 'mesh.dp_mode = "local" is no mesh to compare'
expect_exit 0 verify --set mesh.dp_mode=local --mesh dp=1 --mesh tp=2
# The reference itself rounds: that is no bug of fourfold.
rounds=(--set optim.name=adam --set model.family=gpt2 --set model.kv_heads=6)
expect_exit 64 verify "${rounds[@]}" --mesh dp=1 --mesh dp=2 --weight-tolerance 1e-12
expect_stderr '--weight-tolerance 1e-12 is below what f32 can keep to'
expect_exit 0 verify "${rounds[@]}" --mesh dp=1 --mesh dp=2
expectations_met
