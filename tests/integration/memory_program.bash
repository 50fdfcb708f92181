#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Memory told in advance and held to, over real MPI ranks: what `fourfold plan` says is to the last digit what the run says
# it will take, and little more than that is taken. Usage: memory_program.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"

prepare_text 2000
cat >run.toml <<'END'
[model]
layers = 2
hidden = 256
heads = 4
vocab = 32768
context = 128
[train]
global_batch = 4
micro_batch = 1
steps = 2
[data]
train = ["tokens"]
validation = ["tokens"]
[checkpoint]
resume = "never"
END

# beside PLANNED TAKEN: half a percent less at most (what a run has no reason to touch), and 3 % and 32 MiB more.
beside() { awk -v p="$1" -v t="$2" 'BEGIN { exit !(t > 0.995 * p && t < 1.03 * p + 32) }'; }

# memory RANKS KEY=VALUE...
memory() {
  local ranks=$1 key sets=() && shift
  rm -rf run
  for key in "$@"; do sets+=(--set "$key"); done
  expect_exit 0 "$fourfold" plan run.toml --ranks "$ranks" --rank 0 "${sets[@]}"
  local planned
  planned=$(sed -n 's/^  memory .*together \([0-9.]*\) MiB$/\1/p' "$output")
  expect_exit 0 "$MPIEXEC" -n "$ranks" "$fourfold" train run.toml "${sets[@]}"
  expect_stderr "memory per rank: $(printf '%.1f' "$planned") MiB"
  local figures
  figures=$(sed -n 's/.*memory of rank [0-9]*: \([0-9.]*\) MiB planned, at most \([0-9.]*\) MiB taken.*/\1 \2/p' "$errors")
  # shellcheck disable=SC2086  # two words
  expect beside $figures
  expect grep -q '"event":"memory".*"planned_bytes":{"weights":' run/metrics.jsonl
  expect grep -q 'memory of rank' run/report.html
}
memory 1 train.steps=2
memory 2 mesh.zero=3 mesh.tile_linear=3 train.precision=bf16
memory 2 mesh.pp=2 mesh.schedule=zb-h1 train.recompute=full
memory 2 mesh.zero=1 train.head_chunks=4 offload.optimizer=cpu

expectations_met
