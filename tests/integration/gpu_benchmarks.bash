#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The benchmarks for GPUs, on an emulated one: that they run, and say all that they promise. What figures they give here
# means nothing. Usage: gpu_benchmarks.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"
step=$1/bin/gpu_step
kernels=$1/bin/gpu_kernels
compare=$SOURCE_DIR/benchmarks/gpu_step/compare.py
# holds FILE EXPRESSION: Python's, over `it`, what FILE holds.
holds() {
  expect python3 -c 'import json, math, sys
it = json.load(open(sys.argv[1]))
assert eval(sys.argv[2]), it' "$@"
}

# Each kernel is there, with a share of one of the roofs.
expect_exit 0 "$kernels" --tiny --groups 2 --group-s 0.0001 --json kernels.json
expect_stdout 'large product'
holds kernels.json '{one["kernel"] for one in it["kernels"]} == {
  "layer_norm", "add_layer_norm", "layer_norm_backward", "rms_norm", "add_rms_norm", "rms_norm_backward", "gelu", "gelu_backward", "add", "swiglu",
  "swiglu_backward", "column_sums", "rotary", "embedding", "embedding_backward", "cross_entropy_forward_backward", "adam",
  "sum_of_squares", "cast", "attention", "attention_backward"} | {
  f"{layer} {way}" for layer in ("qkv", "attention out", "mlp up", "mlp down", "head")
  for way in ("forward", "backward input", "backward weight")} | {"mlp up forward gelu", "mlp down backward input gelu"}'
holds kernels.json 'all(one["median_s"] > 0 and math.isclose(
  one["share"], one["bytes_per_s"] / it["copy_bytes_per_s"] if one["roof"] == "copy" else
  one["flop_per_s"] / it["product_flop_per_s"]) for one in it["kernels"])'
# By the formulas, of 32 rows of 48 and of 5000 parameters, and of 2 sequences of 24 in 4 heads of 16.
holds kernels.json '{one["kernel"]: one for one in reversed(it["kernels"])}["layer_norm_backward"]["bytes"] == 32 * (8 * 48 + 8)'
holds kernels.json '{one["kernel"]: one for one in it["kernels"]}["adam"]["bytes"] == 30 * 5000'
holds kernels.json '[one["flop"] for one in it["kernels"] if one["kernel"] == "attention_backward"][0] == 10 * 2 * 4 * 300 * 16'
expect_exit 0 "$kernels" --tiny --groups 2 --group-s 0.0001 --only 'head backward' --json some.json
holds some.json 'len(it["kernels"]) == 4'
expect_exit 64 "$kernels" --groups 0

# A model's steps over random tokens and over a file: the losses are those of the trainer.
expect_exit 0 "$step" --model tiny --warmup 2 --steps 3 --json step.json
holds step.json 'len(it["step_s"]) == 3 and len(it["loss"]) == 5 and it["loss"][-1] < it["loss"][0]'
holds step.json 'it["batch"] == 8 and it["micro_batch"] == 4 and it["tokens"] == 16 and "mfu" not in it'
holds step.json 'it["parameters"] == 2 * 320 * 32 + 2 * (32 * 128 + 3 * 64 * 32 - 32 * 32 - 32 * 32 + 32 * 32 + 64) + 32'
holds step.json 'it["flop_per_token"] == 6 * (320 * 32 + 2 * (3 * 32 * 32 + 3 * 32 * 64)) + 6 * 2 * 32 * 16'
holds step.json 'set(it["phases"]) == {"load_s", "forward_s", "backward_s", "reduce_s", "update_s"}'
holds step.json 'all(it["phases"][phase] > 0 for phase in ("forward_s", "backward_s", "update_s"))'
holds step.json '0 < sum(it["memory"]["tensor_bytes"].values()) <= it["memory"]["used_bytes"] < it["memory"]["total_bytes"]'
expect_exit 0 "$fourfold" data prepare --output tokens "$SOURCE_DIR/benchmarks/gpu_step/curve/text.txt"
expect_exit 0 "$step" --model tiny --warmup 0 --steps 5 --recorded 0 --token-file tokens --json file.json
cat >run.toml <<'TOML'
[model]
family = "llama"
layers = 2
hidden = 32
heads = 4
kv_heads = 2
ffn = 64
vocab = 320
context = 16
tie_embeddings = false
[train]
micro_batch = 4
global_batch = 8
precision = "bf16"
steps = 5
[optim]
schedule = "constant"
lr = 1e-4
[data]
train = ["tokens"]
TOML
expect_exit 0 "$fourfold" train run.toml --set log.dir=run
expect python3 -c 'import json
trained = [record["loss"] for record in map(json.loads, open("run/metrics.jsonl")) if record["event"] == "step"]
assert json.load(open("file.json"))["loss"] == trained, trained'

# A micro-batch that does not fit beside the 32 MiB of cuBLASLt becomes a smaller one; what cannot be is refused.
expect_exit 0 env FOURFOLD_EMULATED_GPU_MIB=36 "$step" --model tiny --micro-batch 64 --global-batch 64 --warmup 0 --steps 1 \
  --json small.json
holds small.json 'it["batch"] == 64 and it["micro_batch"] == 16'
expect_exit 78 env FOURFOLD_EMULATED_GPU_MIB=36 "$step" --model tiny --tokens 16384 --micro-batch 1
expect_stderr 'one sequence needs'
expect_exit 64 "$step" --model gpt3
expect_exit 78 env FOURFOLD_EMULATED_GPUS=0 "$step" --model tiny

# Without a peer the comparison is of fourfold alone, and says so.
expect_exit 0 "$compare" --build "$1" --models tiny --warmup 0 --steps 2 --token-files tokens --json all.json --markdown page.md
expect_stdout 'tiny, tokens tokens: '
holds all.json '[len(part["ours"]) for part in it["models"][0]["runs"]] == [2, 2]'
expect grep -q 'no peer was measured' page.md
expect_exit 1 "$compare" --build . --models tiny
expect_stdout 'failed'

# A peer that is none: which of its ways is the best, and what ours is divided by.
cat >peer <<'BASH'
#!/usr/bin/env bash
case " $* " in
  *' cudnn '* | *' max-autotune '*) echo 'no such kernel' >&2 && exit 1 ;;
  *' max-autotune-no-cudagraphs '*) rate=${TUNED-8} ;;
  *' bf16-weights '*) rate=4 ;;
  *) rate=2 ;;
esac
echo 'NCCL version 2.27.7, say'
sleep "${PAUSE-0}"
[[ ${*: -2:1} == --json ]] || exit 1
echo "{\"peer\": \"a peer\", \"runs\": [{\"median_tokens_per_s\": $rate, \"step_s\": [32, 32], \"parameters\": $PARAMETERS, \"micro_batch\": 4}]}" >"${*: -1}"
BASH
chmod +x peer
PARAMETERS=$(python3 -c 'import json; print(json.load(open("step.json"))["parameters"])')
export PARAMETERS
expect_exit 0 "$compare" --build "$1" --models tiny --warmup 0 --steps 2 --peer-python ./peer --json all.json
expect_stdout 'PyTorch bf16-autocast default cudnn: no such kernel'
expect_stdout 'PyTorch bf16-weights max-autotune default: no such kernel'
holds all.json 'it["models"][0]["runs"][0]["peer_tokens_per_s"] == 8 and it["models"][0]["runs"][0]["ratio"] > 1'
holds all.json '[one["way"] for one in it["models"][0]["runs"][0]["peer"]] == [["bf16-weights", "max-autotune-no-cudagraphs", "default"]] * 2'
expect_exit 0 env TUNED=3 "$compare" --build "$1" --models tiny --warmup 0 --steps 2 --peer-python ./peer --json all.json
holds all.json '[one["way"] for one in it["models"][0]["runs"][0]["peer"]] == [["bf16-weights", "default", "default"]] * 2'
# What there was no time for may be faster: such a bar is not passed, until another run has made up for it.
verdict() {
  expect env PYTHONPATH="$SOURCE_DIR/benchmarks/gpu_step" python3 -B -c 'import bars, json, sys
found = bars.check_steps("tiny", json.load(open("all.json")))["PyTorch tiny"]
assert found[0] == sys.argv[1] and sys.argv[2] in found[1], found' "$@"
}
hurried() {
  expect_exit 0 env PAUSE=6 TUNED=0.001 "$compare" --build "$1" --models tiny --warmup 0 --steps 2 --rounds 1 --seconds "$2" \
    --peer-python ./peer --tried tried.json --json all.json
}
hurried "$1" 20
verdict skipped 'bf16-autocast default default'
expect python3 -c 'import json
tried = json.load(open("tried.json"))["tiny"]
assert [(one["way"][0], "error" in one) for one in tried] == [("bf16-weights", False), ("bf16-autocast", True)], tried
json.dump({"other": None, "tiny": tried + [{"way": ["bf16-weights", "default", "cudnn"], "error": "busy"}]}, open("tried.json", "w"))'
hurried "$1" 90
verdict passed 'times PyTorch'
holds all.json '[one.get("left_out", False) for one in it["models"][0]["tries"]] == [False] * 6'
for damage in '{"tiny": [' '{"tiny": null}' '[]' ''; do
  printf '%s' "$damage" >tried.json
  expect_exit 0 "$compare" --build "$1" --models tiny --warmup 0 --steps 2 --rounds 1 --no-autotune --peer-python ./peer --tried tried.json
  holds tried.json '[one["way"] for one in it["tiny"]] == [["bf16-weights", "default", "default"], ["bf16-autocast", "default", "default"]]'
done
expect_exit 1 env PARAMETERS=1 "$compare" --build "$1" --models tiny --warmup 0 --steps 2 --no-autotune --peer-python ./peer
expect_stderr 'the models differ'

# The floors, beside those that were published for an H100.
expect env PYTHONPATH="$SOURCE_DIR/benchmarks/gpu_step:$SOURCE_DIR/benchmarks/whole_step" python3 -B -c 'import dataclasses, floors, shapes
for model, optimistic, realistic in (("gpt2-124m", 641e3, 501e3), ("gpt2-350m", 243e3, 193e3), ("gpt2-1558m", 62.3e3, 52.1e3)):
    shape = dataclasses.replace(shapes.SHAPES[model], global_batch=512)
    for name, known in (("optimistic", optimistic), ("realistic", realistic)):
        rate = floors.tokens_per_s(shape, floors.H100, name)
        assert abs(rate / known - 1) < 0.01, (model, name, rate)'
expectations_met
