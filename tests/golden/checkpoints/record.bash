#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: record.bash WRITERS USERS TEXT
#
# Writes this folder's checkpoints, and what use.bash makes of them. Run once, with programs of commit 97932a8 (build/host-release/bin), on the
# text of docs/parallelism.md of that commit; later programs have to read what these have written, and to make the same bits of it. WRITERS are that
# commit's as they were. USERS are those but for one option: kernels/optimizer.kokkos.cpp is compiled with -ffp-contract=off, as it is since
# an update has the same bits on a GPU as on a host.
set -euo pipefail
writers=$(realpath "$1") users=$(realpath "$2") text=$(realpath "$3")
cd "$(dirname "$0")"
head -c 12000 "$text" >text.txt
"$writers/fourfold" data prepare --tokenizer byte --output tokens --progress=none text.txt
rm text.txt
./cpu.bash >cpu
export OMP_NUM_THREADS=1 DNNL_MAX_CPU_ISA=AVX2
for case in gpt2_dropout_sgd llama_bf16_zero2; do
  work=$(mktemp -d)
  cp tokens.* $case/run.toml "$work"
  (cd "$work" && "${MPIEXEC:-mpiexec}" -n 4 "$writers/fourfold" train run.toml >out 2>&1) || { cat "$work/out" && exit 1; }
  rm -rf $case/checkpoints $case/expected
  mkdir $case/checkpoints
  cp -r "$work/checkpoints/step-000000004" $case/checkpoints
  rm -r "$work"
  ./use.bash "$users" . $case $case/expected
done
