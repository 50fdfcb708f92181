#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The run file and the commands of README.md, exactly as they are printed there, in an empty folder with a text as book.txt. Usage:
# readme.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
tests=$(readlink -f -- "$(dirname "$0")")
begin "$1"

cat "$SOURCE_DIR"/docs/{run-directory,checkpoints,data,memory}.md >book.txt
mkdir -p bin
# The page says mpiexec, which may be that of another MPI.
printf '#!/bin/sh\nexec "%s" "$@"\n' "$MPIEXEC" >bin/mpiexec
chmod +x bin/mpiexec
PATH=$work/bin:$(dirname "$fourfold"):$PATH expect_exit 0 timeout 500 \
  python3 "$tests/printed_commands.py" --run . --record record.json "$SOURCE_DIR/README.md"
expect_stdout '9 commands, 1 files'

expect python3 - <<'END'
import collections
import json
import math
import re

def said(command: str) -> tuple[str, str]:
    """What the one command that begins so has printed."""
    found = [one for one in json.load(open("record.json")) if one["command"].startswith(command)]
    assert len(found) == 1, (command, len(found))
    return found[0]["stdout"], found[0]["stderr"]

def losses(event: str) -> list[float]:
    return [record["loss"] for record in map(json.loads, open("runs/book/metrics.jsonl")) if record["event"] == event]

# The plan and the run have the same number for the memory of a rank.
planned = re.search(r"^ +0 .* ([\d.]+)  embedding", said("fourfold plan")[0], re.M)
assert planned, said("fourfold plan")
assert "passed" in said("fourfold verify")[0] + said("fourfold verify")[1], said("fourfold verify")
log = said("mpiexec -n 2 fourfold train")[1]
assert f"memory per rank: {float(planned[1]):.1f} MiB" in log and "step 200/200" in log, (planned, log)
# It learns: the loss is well below that of guessing each byte by its frequency alone.
text = open("book.txt", "rb").read()
unigram = -sum(n / len(text) * math.log(n / len(text)) for n in collections.Counter(text).values())
assert losses("step")[0] > 5 and losses("eval")[-1] < unigram - 0.3, (unigram, losses("eval"))
sample = said("fourfold sample")[0]
assert sample.startswith("It was") and len(sample) > 50, sample
assert "saved on mesh pp1 dp2 cp1 tp1, now pp1 dp2 cp1 tp2" in said("mpiexec -n 4 fourfold train")[1]
assert "every bit was kept" in said("fourfold ckpt reshard")[0]
assert "equal: the same state" in said("fourfold ckpt diff")[0]
END
expect test -s runs/book/report.html
expect test -d resharded/step-000000205
expect test -s book-hf/model.safetensors
expectations_met
