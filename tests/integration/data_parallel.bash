#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The same global batch over 1, 2, 4 and 8 real MPI ranks: 20 steps with the losses of one rank. Usage:
# data_parallel.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
fourfold=$1/bin/fourfold
work=$(mktemp -d)
trap 'rm -rf "$work" "$output" "$errors"' EXIT
cd "$work" || exit 1

for i in $(seq 200); do printf 'chapter %d, in which nothing happens twice\n' "$i"; done >text.txt
expect_exit 0 "$fourfold" data prepare --output tokens --append-eot text.txt
cat >run.toml <<'END'
[model]
family = "llama"
layers = 2
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

for ranks in 1 2 4 8; do
  expect_exit 0 "$MPIEXEC" -n "$ranks" "$fourfold" train run.toml --set "log.dir=\"dp$ranks\"" --set mesh.dp_bucket_mb=0.02
done

# Prints the largest relative difference to one rank, and fails when it is above the bar.
compare() {
  python3 -c 'import json, sys
def losses(run):
    records = map(json.loads, open(f"dp{run}/metrics.jsonl"))
    return [record["loss"] for record in records if record["event"] == "step"]
one = losses(1)
assert len(one) == 20 and one[-1] < 0.8 * one[0], one
for run in (2, 4, 8):
    other = losses(run)
    assert len(other) == 20
    worst = max(abs(a - b) / b for a, b in zip(other, one))
    print(f"dp = {run}: within {worst:.1e} of one rank")
    assert worst <= 1e-6'
}
compare || complain "losses depend on the number of ranks"
expectations_met
