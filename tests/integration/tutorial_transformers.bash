#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The tutorial on transformers, as it is printed. Needs a Python with torch and transformers, named by FOURFOLD_TEST_PYTHON.
# Usage: tutorial_transformers.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
python=${FOURFOLD_TEST_PYTHON:-}
if [[ -z $python ]] || ! "$python" -c 'import torch, transformers' 2>/dev/null; then
  echo "FOURFOLD_TEST_PYTHON names no Python with torch and transformers" && exit 77
fi
begin "$1"
mkdir bin && ln -s "$(command -v "$python")" bin/python3
PATH=$work/bin:$1/bin:$PATH
pages=("$SOURCE_DIR"/docs/tutorials/{first-model,transformers}.md)

expect_exit 0 python3 "$SOURCE_DIR/tests/integration/printed_commands.py" --run . --record record.json "${pages[@]}"
# What the page says: both print the same text; the way back keeps the bits; one tensor has been changed.
expect python3 - <<'END'
import json
said = {step["command"].split("#")[0].strip(): step["stdout"] for step in json.load(open("record.json"))}
by_hand, ours = said["python3 generate.py"], said['fourfold sample --checkpoint runs/book --prompt "You may" --tokens 40 --temperature 0']
assert by_hand.strip() == ours.strip() and len(ours) > 20, (by_hand, ours)
back = said["fourfold ckpt diff --digests-only runs/book imported/book || true"]
assert "master  equal, bit for bit" in back, back
changed = said["fourfold ckpt diff imported/book imported/changed || true"]
assert "final_norm" in changed and "layers." not in changed, changed
END

expectations_met
