#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The command that proves a GPU, on an emulated one. Usage: gpu_check.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"
check=$work/gpu-check # of fewer steps: under the sanitizers all that a step does is slow
printf '#!/bin/sh\nexec "%s/scripts/gpu-check" --steps 24 "$@"\n' "$SOURCE_DIR" >"$check"
chmod +x "$check"

expect_exit 0 "$check" --build "$1" --out out --mesh dp=2,zero=3 pp=2,tp=2 --only profiler_ranges --only verify --only same --reference none --only curve
expect_stdout 'All tests passed'
expect_stdout '2 meshes, losses within'
expect_stdout 'same bits bf16  24 steps'
expect_stdout 'loss curve  no reference'
expect_stdout ' 0 FAILED'
expect python3 -c 'import json
results = json.load(open("out/gpu-check.json"))["results"]
assert sum(result["verdict"] == "passed" for result in results) == 9, results'

# What a check needs is done, and no more; what is not there is not passed over in silence.
expect_exit 0 "$check" --build "$1" --out out --only 'same bits f32'
expect_stdout '4 passed, 0 FAILED, 0 skipped'
expect_exit 0 "$check" --build "$1" --out out --only 'train f32 first'
expect_stdout '2 passed, 0 FAILED, 0 skipped'
expect_exit 64 "$check" --build "$1" --out none --only device_test --only nonsense
expect_stderr "is called 'nonsense'"
expect_stderr '  curve: tokens of the loss curve, loss curve'
[[ ! -e none ]] || complain 'a folder was made for no check'
expect_exit 77 "$check" --build "$1" --out out --only curve --reference none
expect_stdout '0 passed, 0 FAILED, 1 skipped'
expect_stderr 'all was skipped'

# Runs into one folder make one report, in which each replaces its own; a check that is skipped takes nothing away.
expect_exit 0 "$check" --build "$1" --out one --only gpu_kernels --models tiny
expect_exit 0 "$check" --build "$1" --out one --only 'train f32 first'
expect_stdout 'kept of earlier runs: '
expect_stdout ', 0 of them FAILED'
expect_exit 1 env FOURFOLD_EMULATED_GPU_FAIL=ncclCommInitRankConfig:1:1 "$check" --build "$1" --out one --only 'train f32 first'
expect_exit 77 "$check" --build "$1" --out one --only 'train f32 first' --seconds 1
holds_results() { # PYTHON: true of the verdicts in one/gpu-check.json, by name
  expect python3 -c 'import json, sys
report = json.load(open("one/gpu-check.json"))
verdicts = {one["name"]: one["verdict"] for one in report["results"]}
assert len(verdicts) == len(report["results"]) and eval(sys.argv[1]), report' "$1"
}
holds_results '[verdicts[name] for name in ("prepare tokens", "train f32 first", "gpu_kernels tiny")] == ["passed", "FAILED", "passed"]'
holds_results '[one["group"] for one in report["results"]][:3] == ["meshes", "meshes", "benchmarks"] and len(report["commands"]) == 3'
expect grep -q '^| benchmarks | gpu_kernels tiny | passed |' one/gpu-check.md
expect grep -q '^## Kernels on a GPU' one/gpu-check.md
expect grep -q '^| meshes | train f32 first | FAILED |' one/gpu-check.md
# Not of another GPU or build, nor beside what is no report.
cp -r one other
sed -i 's/"commit": "/&a/' other/gpu-check.json
expect_exit 73 "$check" --build "$1" --out other --only prepare
expect_stderr 'the report of something else: commit a'
expect cmp <(sed 's/"commit": "a/"commit": "/' other/gpu-check.json) one/gpu-check.json
echo '{}' >other/gpu-check.json
expect_exit 73 "$check" --build "$1" --out other --only prepare
expect_stderr 'is no report'

# All that is labelled for devices is asked for, but for what wants several, and what is not built is said.
for name in device_test comm_nccl_test cuda_graphs_test model_golden_test profiler_ranges_test long_runs_test local_tier_run_test; do
  expect grep -qx "$name [0-9]*" "$1/tests/device_tests.txt"
done
expect_exit 1 grep registered_memory_test "$1/tests/device_tests.txt"
mkdir -p some/tests
ln -s "$1/tests/device_test" some/tests/
printf '%s\n' 'cuda_graphs_test 300' 'device_test 60' >some/tests/device_tests.txt
expect_exit 0 "$check" --build some --out out3 --only tests
expect_stdout 'cuda_graphs_test  not built'
expect_stdout '1 passed, 0 FAILED, 1 skipped'
# Two that wait for each other, which they need not when both run at once.
for pair in 'one two' 'two one'; do
  printf '#!/usr/bin/env bash\ntouch met-%s\nfor _ in {1..100}; do [[ ! -e met-%s ]] || { echo met; exit 0; }; sleep 0.1; done\nexit 1\n' "${pair% *}" "${pair#* }" \
    >"some/tests/${pair% *}_test"
  chmod +x "some/tests/${pair% *}_test"
done
printf '%s\n' 'one_test 60' 'two_test 60' >some/tests/device_tests.txt
expect_exit 1 "$check" --build some --out out4 --only tests
expect_stdout '1 passed, 1 FAILED, 0 skipped'
rm met-*
expect_exit 0 "$check" --build some --out out4 --only tests --jobs 2
expect_stdout '2 passed, 0 FAILED, 0 skipped'
rm some/tests/device_tests.txt
expect_exit 78 "$check" --build some --out out3
expect_stderr 'is no build for GPUs'

# What fails is said, and the rest is done all the same.
expect_exit 1 env FOURFOLD_EMULATED_GPU_FAIL=ncclCommInitRankConfig:1:1 "$check" --build "$1" --out out --only 'train f32' \
  --only profiler_ranges
expect_stdout 'exit code 85'
expect_stdout '2 FAILED'
expect_exit 78 env FOURFOLD_EMULATED_GPUS=0 "$check" --build "$1" --out out
expect_stderr 'there is no GPU'
expect_exit 78 "$check" --build . --out out
expect_stderr 'is no build for GPUs'

# A curve beside its own, beside one whose last step alone is 2 % away, and beside one that is.
mkdir curve
cp out/runs/tokens.* curve/
sed 's/lr = 1e-2/lr = 1e-3/' out/runs/run.toml >curve/run.toml
expect_exit 0 "$fourfold" train curve/run.toml --set log.dir=curve --set 'data.train=["curve/tokens"]'
expect_exit 0 "$check" --build "$1" --out out --only curve --reference curve
expect_stdout 'passed'
cp -r curve outlier
python3 -c 'import json
lines = [json.loads(line) for line in open("outlier/metrics.jsonl")]
[line for line in lines if line["event"] == "step"][-1]["loss"] *= 1.02
open("outlier/metrics.jsonl", "w").write("".join(json.dumps(line) + "\n" for line in lines))'
expect_exit 0 "$check" --build "$1" --out out --only curve --reference outlier
python3 -c 'import json
records = [json.loads(line) for line in open("curve/metrics.jsonl")]
for record in records:
    if record["event"] == "step":
        record["loss"] *= 1.02
open("curve/metrics.jsonl", "w").write("".join(json.dumps(record) + "\n" for record in records))'
expect_exit 1 "$check" --build "$1" --out out2 --only curve --reference curve
expect_stdout 'steps 5 to 24:'
# One whose tokens are made of the text beside it.
rm curve/tokens.*
expect_exit 1 "$check" --build "$1" --out out2 --only curve --reference curve
expect_stdout 'text.txt: cannot be opened'
cp out/runs/text.txt curve/
expect_exit 1 "$check" --build "$1" --out out2 --only curve --reference curve
expect_stdout 'steps 5 to 24:'

# The benchmarks, with tiny shapes; their tables are in the report.
expect_exit 0 "$check" --build "$1" --out out --only benchmarks --models tiny --peer-python ''
expect_stdout 'kernels at 80 % of a copy or more, worst'
expect_stdout 'tiny, random tokens: '
expect_stdout '2 passed, 0 FAILED, 5 skipped'
expect_stdout 'AdamW kernel tiny  tiny shapes measure nothing'
expect grep -q '^| benchmarks | gpu_step tiny | passed |' out/gpu-check.md
expect grep -q '^## Kernels on a GPU' out/gpu-check.md
expect grep -q '^| cross_entropy_forward_backward | 16x320 |' out/gpu-check.md
expect grep -q '^| tiny | random | 4 x 16, 2 times |' out/gpu-check.md

# Bars, by figures of an earlier run that are just good enough, then by some that are not.
figures() { # NAME=VALUE...: what benchmarks leave in the folder `one`, but for what is said
  python3 - "$@" <<'PYTHON'
import json, sys
it = {"norm": 0.801, "gelu": 0.85, "classifier": 0.8, "adam": 0.9, "rate": 401e3, "ratio": 1.001}
it |= {name: float(value) for name, value in (word.split("=") for word in sys.argv[1:])}
def step(data, rate, **more):
    return {"data": data, "ours": [{"device": "NVIDIA unheard of; cuBLASLt", "flop_per_token": 1e9}], "peer": [], "ours_tokens_per_s": rate} | more
def steps(model, parts, tries=()):
    for part in parts if model != "gpt2-1558m" else []:
        part["ours"][0]["peak_tflop_per_s"] = 1000
    json.dump({"models": [{"model": model, "tries": tries, "runs": parts}]}, open(f"one/gpu_step-{model}.json", "w"))
shares = [("layer_norm", 0.9), ("rms_norm_backward", it["norm"]), ("gelu", it["gelu"]), ("add", 0.1), ("adam", it["adam"]),
          ("cross_entropy_forward_backward", it["classifier"])]
json.dump({"kernels": [{"kernel": name, "shape": "8x4", "roof": "copy", "share": share} for name, share in shares] +
           [{"kernel": "mlp up forward gelu", "shape": "8x4x4", "roof": "product", "share": 0.1}]}, open("one/gpu_kernels.json", "w"))
steps("gpt2-124m", [step("random", 450e3, ratio=it["ratio"]), step("text", it["rate"], ratio=1.2),
                    {"data": "none", "ours": [{"error": "failed"}], "peer": []}])
steps("gpt2-350m", [step("random", 1.0)], [{"way": ["bf16-weights"], "error": "no such kernel"}])
steps("gpt2-1558m", [step("random", 1.0)])
report = json.load(open("one/gpu-check.json"))
known = [one["name"] for one in report["results"]]
report["results"] += [{"group": "benchmarks", "name": name, "verdict": "passed", "seconds": 1, "note": ""}
                      for name in ("gpu_kernels", "gpu_step gpt2-124m", "gpu_step gpt2-350m", "gpu_step gpt2-1558m") if name not in known]
json.dump(report, open("one/gpu-check.json", "w"))
PYTHON
}
some=("$check" --build "$1" --out one --only bars --models gpt2-124m gpt2-350m gpt2-1558m)
figures
expect_exit 0 "${some[@]}"
expect_stdout '6 passed, 0 FAILED, 3 skipped'
expect_stdout 'norm kernels  2 of 2 at 80 % of a copy or more, slowest: rms_norm_backward 8x4 80.1 %'
expect_stdout 'MFU gpt2-124m  40.1 % on text tokens (bar 40 %)'
expect_stdout 'PyTorch gpt2-124m  1.001 times PyTorch on random tokens (bar 1.00)'
expect_stdout 'PyTorch gpt2-350m  PyTorch failed: no such kernel'
expect_stdout 'MFU gpt2-1558m  no MFU: the peak of NVIDIA unheard of is not known'
expect_stdout 'PyTorch gpt2-1558m  no PyTorch was measured'
fails() { # CHANGE NOTE: one figure that is not good enough
  figures "$1"
  expect_exit 1 "${some[@]}"
  expect_stdout '5 passed, 1 FAILED, 3 skipped'
  expect grep -q "^FAILED .*  $2" "$output"
}
fails norm=0.799 'norm kernels  1 of 2 at 80 % of a copy or more, slowest: rms_norm_backward 8x4 79.9 %'
fails gelu=0.5 'activation kernels  0 of 1'
fails classifier=0.79 'classifier kernel  0 of 1'
fails adam=0.79 'AdamW kernel  0 of 1'
fails rate=399e3 'MFU gpt2-124m  39.9 % on text tokens'
fails ratio=0.999 'PyTorch gpt2-124m  0.999 times PyTorch'
expect grep -q '^| bars | PyTorch gpt2-124m | FAILED |' one/gpu-check.md
echo '{"models": ' >one/gpu_step-gpt2-124m.json
expect_exit 77 "${some[@]:0:5}" --only 'MFU gpt2-124m'
expect_stdout 'gave no figures that can be read'
expectations_met
