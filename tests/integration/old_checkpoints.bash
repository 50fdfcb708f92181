#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Checkpoints of the first version with every key go on, are measured, sampled from and exported: to the bits of then, on a CPU and with a
# compiler like those of then; elsewhere sums may be taken in another order. Usage: old_checkpoints.bash BUILD_DIR CONFIG-COMPILER
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
checkpoints=$SOURCE_DIR/tests/golden/checkpoints
begin "$1"
same=no
[[ $2 != Release-GNU || $("$checkpoints/cpu.bash") != "$(cat "$checkpoints/cpu")" ]] || same=yes

# Numbers that are as near as their precision; words that are the same.
near() { # CASE EXPECTED MADE
  python3 - "$@" <<'PY'
import sys
case, *files = sys.argv[1:]
tolerance = 1e-5 if case.startswith("gpt2") else 2e-2  # f32, bf16
a, b = ([line.split() for line in open(name, encoding="latin-1") if "/" not in line.split()[0]] for name in files)
assert len(a) == len(b) > 0, (a, b)
for x, y in zip(a, b):
    assert len(x) == len(y), (x, y)
    assert all(abs(float(s) - float(t)) <= tolerance * abs(float(s)) for s, t in zip(x, y)), (x, y)
PY
}

for case in gpt2_dropout_sgd llama_bf16_zero2; do
  expect_exit 0 env MPIEXEC="$MPIEXEC" bash "$checkpoints/use.bash" "$1/bin" "$checkpoints" $case "$work/$case"
  [[ $(ls "$work/$case") == $(ls "$checkpoints/$case/expected") ]] || complain "$case: other files"
  for expected in "$checkpoints/$case/expected"/*; do
    made=$work/$case/${expected##*/}
    case $same-${expected##*/} in
      yes-* | *-export) expect cmp "$expected" "$made" ;; # an export computes nothing
      *-sample) [[ -s $made ]] || complain "$case: no sample" ;;
      *) expect near $case "$expected" "$made" ;;
    esac
  done
done

# What is in them is shown, and planned by a program that cannot open them.
for case in gpt2_dropout_sgd llama_bf16_zero2; do
  folder=$checkpoints/$case/checkpoints
  [[ -d $folder ]] || folder=$checkpoints/$case
  expect_exit 0 "$fourfold" ckpt info --run-file "$folder"
  cp "$output" "$case.toml"
  printf '%s\n' '[data]' 'train = ["none"]' '[checkpoint]' "resume = \"$folder\"" >"$case-alone.toml"
  expect_exit 0 "$fourfold" plan "$case.toml" --ranks 1 --set mesh.dp=1 --set mesh.pp=1 --set mesh.tp=1
  planned=$(sed -n 's/^\(model .* parameters\).*/\1/p' "$output")
  [[ -n $planned ]] || complain "$case: no model is planned"
  expect_exit 0 "$fourfold" plan "$case-alone.toml" --ranks 1
  expect_stdout "$planned"
done
expect grep -q '^kind = "linear"\|^kind = "llama3"' llama_bf16_zero2.toml
expectations_met
