#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The same global batch over data-parallel and tensor-parallel meshes of real MPI ranks: 20 steps with the losses of one
# rank. Usage: meshes.bash BUILD_DIR
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

# run RANKS TP: into the folder RANKS.TP
run() {
  expect_exit 0 "$MPIEXEC" -n "$1" "$fourfold" train run.toml --set "log.dir=\"$1.$2\"" --set "mesh.tp=$2" \
    --set mesh.dp_bucket_mb=0.02
}
for ranks in 1 2 4 8; do run "$ranks" 1; done
run 2 2
run 8 2
run 6 6

# Prints the largest relative difference to one rank, and fails when it is above the bar.
compare() {
  python3 -c 'import json
def losses(ranks, tp):
    records = map(json.loads, open(f"{ranks}.{tp}/metrics.jsonl"))
    return [record["loss"] for record in records if record["event"] == "step"]
one = losses(1, 1)
assert len(one) == 20 and one[-1] < 0.8 * one[0], one
for ranks, tp, bar in ((2, 1, 1e-6), (4, 1, 1e-6), (8, 1, 1e-6), (2, 2, 1e-5), (8, 2, 1e-5), (6, 6, 1e-5)):
    other = losses(ranks, tp)
    assert len(other) == 20
    worst = max(abs(a - b) / b for a, b in zip(other, one))
    print(f"{ranks} ranks, tp = {tp}: within {worst:.1e} of one rank")
    assert worst <= bar'
}
compare || complain "losses depend on the mesh"

# Six query heads on two key/value heads cannot be dealt to four ranks.
expect_exit 78 "$MPIEXEC" -n 4 "$fourfold" train run.toml --set log.dir=none --set mesh.tp=4
expect_stderr 'mesh.tp = 4 does not fit model.heads = 6 with model.kv_heads = 2'
expect_stderr 'set it to one of 1, 2, 6'
expectations_met
