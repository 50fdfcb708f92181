#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: use.bash PROGRAMS FOLDER CASE OUTPUT
#
# What a user does with the checkpoint of a case: goes on with the run, on the mesh that saved it and on another; measures it, samples from
# it, exports it. FOLDER holds tokens and CASE/{run.toml,checkpoints}; PROGRAMS fourfold's. OUTPUT, which is made, gets one file for each, of bits only.
set -euo pipefail
programs=$(realpath "$1") folder=$(realpath "$2") case=$3
mkdir -p "$4"
output=$(realpath "$4")
fourfold=$programs/fourfold
mpiexec=${MPIEXEC:-mpiexec}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1 DNNL_MAX_CPU_ISA=AVX2

# Losses and norms of the steps to come, and the digests of all that is saved after the last.
go_on() { # NAME RANKS OPTION...
  local name=$1 ranks=$2 run=$work/$1
  shift 2
  mkdir "$run"
  cp -r "$folder/$case/checkpoints" "$folder/$case/run.toml" "$folder"/tokens.* "$run"
  (cd "$run" && "$mpiexec" -n "$ranks" "$fourfold" train run.toml --set train.steps=8 "$@" >out 2>&1) || {
    cat "$run/out"
    return 1
  }
  python3 - "$run" <<'PY' >"$output/$name"
import json, pathlib, subprocess, sys
run = pathlib.Path(sys.argv[1])
for line in (run / "metrics.jsonl").read_text().splitlines():
    record = json.loads(line)
    if record.get("grad_norm") is not None and record["step"] > 4:
        print(record["step"], repr(record["loss"]), repr(record["grad_norm"]))
manifest = json.loads((run / "checkpoints/step-000000008/MANIFEST.json").read_text())
for name, digest in sorted(manifest["digests"].items()):
    print(name, digest)
PY
}

checkpoint=$folder/$case/checkpoints
go_on same_mesh 4
case $case in
  gpt2_dropout_sgd) go_on other_mesh 4 --set mesh.pp=1 --set mesh.tp=2 --set mesh.cp=2 --set mesh.context_mode=ulysses ;;
  llama_bf16_zero2) go_on other_mesh 2 --set mesh.tp=1 --set mesh.pp=2 --set mesh.zero=0 ;;
esac
go_on one_rank 1 --set mesh.pp=1 --set mesh.tp=1
"$fourfold" evaluate --checkpoint "$checkpoint" --data "$folder/tokens" --samples 12 --json |
  python3 -c 'import json, sys; print(repr(json.load(sys.stdin)["loss"]))' >"$output/evaluate"
"$fourfold" sample --checkpoint "$checkpoint" --prompt "The mesh" --tokens 40 --seed 3 --tokenizer byte 2>/dev/null >"$output/sample"
"$fourfold" ckpt export "$checkpoint" "$work/hf" --format hf >/dev/null
(cd "$work/hf" && sha256sum ./*.safetensors && grep -v _token_id config.json) >"$output/export"
