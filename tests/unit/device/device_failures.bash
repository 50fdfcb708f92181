#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: device_failures.bash PROGRAM
#
# What a process is told when there is no GPU for it, or the GPU fails. PROGRAM is take_and_copy, built for the emulated
# device.
set -euo pipefail
program=$1
failed=0
first=

# expect CODE WORDS RANK RANKS [SETTING...]: the program ends with CODE and says WORDS.
expect() {
  local code=$1 words=$2 rank=$3 ranks=$4 got=0 said && shift 4
  said=$(env "$@" "$program" "$rank" "$ranks" ${first:+"$first"}) || got=$?
  if [[ $got -ne $code || $said != *"$words"* ]]; then
    printf 'with %s: expected %s and "%s", got %s and:\n%s\n' "$*" "$code" "$words" "$got" "$said"
    failed=1
  fi
}

expect 0 'GPU 0, 0000:00:00.0' 0 1 A=b
expect 0 'GPU 3, 0000:03:00.0' 3 4 FOURFOLD_EMULATED_GPUS=4
expect 0 'kernels late' 0 1 A=b
expect 0 'kernels first' 0 1 CUDA_MODULE_LOADING=EAGER
first=first
expect 0 'kernels first' 0 1 A=b
expect 0 'kernels late' 0 1 CUDA_MODULE_LOADING=LAZY # as the user likes
first=
# The batch system shows each rank one GPU, its own.
expect 0 'GPU 0, ' 3 4 FOURFOLD_EMULATED_GPUS=1
expect 78 '4 ranks on this machine, but 2 GPUs (each rank takes one)' 1 4 FOURFOLD_EMULATED_GPUS=2
expect 78 'no GPU can be used here (there is no NVIDIA driver)' 0 1 FOURFOLD_EMULATED_GPUS=no-driver
expect 78 'no GPU can be used here (the driver shows none' 0 1 FOURFOLD_EMULATED_GPUS=0
expect 78 'the driver serves CUDA 12.2 and older, this program is of CUDA 1' 0 1 FOURFOLD_EMULATED_GPUS=old-driver
expect 78 'GPU 0 is too old for this program (Emulated GPU has compute capability 7.0; fourfold needs 8.0 and newer); ask for other nodes' 0 1 FOURFOLD_EMULATED_GPU_SM=70
expect 78 'GPU 0 (Emulated GPU): cudaMalloc of 1000 bytes (0.00 GiB) failed (0.00 of 0.00 GiB are free)' 0 1 FOURFOLD_EMULATED_GPU_MIB=0
expect 78 'cudaHostAlloc of 1000 bytes (0.00 GiB) of pinned host memory failed' 0 1 FOURFOLD_EMULATED_GPU_FAIL=cudaHostAlloc:1:2
# 214: an uncorrectable error of its memory; 700: we wrote where nothing is.
expect 85 'cudaStreamSynchronize failed (cudaErrorECCUncorrectable' 0 1 FOURFOLD_EMULATED_GPU_FAIL=cudaStreamSynchronize:3:214
expect 70 'GPU 0 (Emulated GPU): cudaMemcpyAsync of 1000 bytes failed (cudaErrorIllegalAddress' 0 1 FOURFOLD_EMULATED_GPU_FAIL=cudaMemcpyAsync:1:700
exit $failed
