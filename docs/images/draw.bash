#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Makes the pictures in this folder again. Usage: docs/images/draw.bash [BUILD_DIR]
# timeline.svg is measured: a step of a pipeline of two ranks, on a machine with two cores or more that does nothing else.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-$here/../../build/host-release}" && pwd)
fourfold=$build/bin/fourfold
mpiexec=$(sed -n 's/^MPIEXEC_EXECUTABLE:FILEPATH=//p' "$build/CMakeCache.txt")

for schedule in 1f1b interleaved zb-h1 zb-v; do
  "$fourfold" plan --schedule "$schedule" --stages 4 --micro-batches 8 --svg "$here/schedule-$schedule.svg"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat "$here"/../*.md >text.txt
"$fourfold" data prepare --output tokens text.txt
cat >run.toml <<'TOML'
[model]
family = "llama"
layers = 8
hidden = 256
heads = 4
context = 256
[mesh]
pp = 2
schedule = "zb-h1"
[train]
global_batch = 8
micro_batch = 1
steps = 6
[data]
train = ["tokens"]
[log]
dir = "run"
trace = true
TOML
"$mpiexec" -n 2 "$fourfold" train run.toml
cp run/timeline.svg "$here/timeline.svg"
