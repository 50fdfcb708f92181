#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The tutorials that need nothing but the programs: their commands run as they are printed, in their order, in an empty folder,
# and do what the pages say. Usage: tutorials.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"
# The pages say mpiexec, which may be that of another MPI.
mkdir bin && printf '#!/bin/sh\nexec "%s" "$@"\n' "$MPIEXEC" >bin/mpiexec && chmod +x bin/mpiexec
PATH=$work/bin:$1/bin:$PATH
docs=$SOURCE_DIR/docs

# pages PAGE...: runs them.
pages() { python3 "$SOURCE_DIR/tests/integration/printed_commands.py" --run . --record record.json "${@/#/$docs/}"; }
# said WORDS...: each stands in what the commands that begin with the first have said.
said() {
  expect python3 - "$@" <<'END'
import json, sys
command, *wanted = sys.argv[1:]
printed = "".join(step["stdout"] + step["stderr"] for step in json.load(open("record.json")) if step["command"].startswith(command))
missing = [words for words in wanted if words not in printed]
assert printed and not missing, (command, missing, printed[-2000:])
END
}

expect_exit 0 pages tutorials/first-model.md tutorials/another-mesh.md tutorials/one-node.md
said 'fourfold train' '(step 200, saved on mesh pp1 dp1 cp1 tp1' 'step 250 finished' 'optim.decay_steps: 200 -> 250' \
  'saved on mesh pp2 dp1 cp1 tp1, now pp1 dp1 cp1 tp1'
said 'fourfold sample' 'You may'
said 'fourfold verify' 'passed'
said 'fourfold ckpt diff' 'equal: the same state'
said 'mpiexec -n 4 fourfold train' 'on mesh pp1 dp2 cp1 tp2'
said 'mpiexec -n 2 fourfold train' 'saved on mesh pp1 dp2 cp1 tp2, now pp2 dp1 cp1 tp1' 'resumed from runs/two'
said 'mpiexec -n 2 fourfold bench' 'all_reduce'
expect test -s runs/book/report.html -a -s compared.html
# "here the loss falls below 3".
expect python3 -c 'import json
steps = [json.loads(line) for line in open("runs/book/metrics.jsonl")]
losses = {step["step"]: step["loss"] for step in steps if step["event"] == "step"}
assert losses[1] > 5 and losses[200] < 3, (losses[1], losses[200])
assert losses[250] < losses[200] + 0.2, losses'

expectations_met
