#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The curves of a run, as Weights & Biases has them after docs/wandb_export.py: those of metrics.jsonl, without the steps
# that a later start has replaced. Needs a Python with wandb, named by FOURFOLD_TEST_PYTHON. Usage: wandb_export.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
# shellcheck source=tests/integration/small_run.bash
. "$(dirname "$0")/small_run.bash"
python=${FOURFOLD_TEST_PYTHON:-}
[[ -n $python ]] && "$python" -c 'import wandb' 2>/dev/null || exit 77
begin "$1"

small_run 5 'eval_every_steps = 2' 'eval_batches = 1'
printf '%s\n' 'every_steps = 1' '[optim]' 'decay_steps = 8' '[checkpoint]' 'every_steps = 3' 'keep_last = 9' >>run.toml
train() { "$fourfold" train run.toml --set 'data.validation=["tokens"]' "$@"; }

# The second start continues from step 3 with another learning rate, and to step 4 only: step 5 is not of this run any more.
expect_exit 0 train
expect rm -r run/checkpoints/step-000000005 run/FINISHED
expect_exit 0 train --set train.steps=4 --set optim.lr=1e-2 --allow-change=optim.lr
printf '{"event": "step", "st' >>run/metrics.jsonl # as a crash leaves it
expect_exit 0 env WANDB_SILENT=true "$python" "$SOURCE_DIR/docs/wandb_export.py" run
cat >check.py <<'PYTHON'
"""The file is a log of LevelDB: blocks of 32 KiB, in them pieces of records with a checksum, a length and a type."""
import json, pathlib, struct, sys, tomllib
from wandb.proto.wandb_internal_pb2 import Record

def records(data, at=7, whole=b""):
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        whole += data[at + 7:at + 7 + size]
        at += 7 + size
        if kind in (1, 4):
            yield Record.FromString(whole)
            whole = b""

written = list(records(pathlib.Path(sys.argv[1]).read_bytes()))
rows = [{item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for record in written if record.WhichOneof("record_type") == "history"]
events = [json.loads(line) for line in open("run/metrics.jsonl", encoding="utf-8").readlines()[:-1]]
last = {(event["event"], event["step"]): event for event in events if event["event"] in ("step", "eval")}
assert sum(event["event"] == "step" for event in events) == 5 + 1 and [row["_step"] for row in rows] == [1, 2, 3, 4], rows
for row in rows:
    for event, name in ("step", "train"), ("eval", "validation"):
        expected = {f"{name}/{key}": value for key, value in last.get((event, row["_step"]), {}).items()
                    if key not in ("event", "step")}
        assert {key: value for key, value in row.items() if key.startswith(name)} == expected, (row, expected)
configs = [record.run.config.update for record in written if record.WhichOneof("record_type") == "run"]
config = {item.key: json.loads(item.value_json) for item in configs[0] if item.key}
assert config["optim"] == tomllib.load(open("run/config.toml", "rb"))["optim"] and config["optim"]["lr"] == 0.01, config
PYTHON
expect_exit 0 "$python" check.py wandb/offline-run-*/run-*.wandb
expectations_met
