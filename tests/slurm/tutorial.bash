#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The tutorial on Slurm, as it is printed, against a real Slurm of two nodes. Usage: tutorial.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 2
unset FOURFOLD_MPI # submit knows what this build needs
pages=$SOURCE_DIR/docs/tutorials

# Of the first tutorial only what this one goes on with: the tokens and the run file.
expect python3 -B - "$pages/first-model.md" <<'END'
import os, pathlib, sys
sys.path.insert(0, os.path.join(os.environ["SOURCE_DIR"], "tests/integration"))
import printed_commands
steps = printed_commands.steps_of("first-model.md", pathlib.Path(sys.argv[1]).read_text())
wanted = [step for step in steps if step.file or step.text.startswith(("cat ", "fourfold data prepare "))]
assert len(wanted) == 3, wanted
assert all(said["code"] == 0 for said in printed_commands.run(wanted, pathlib.Path(".")))
END
expect_exit 0 timeout 200 python3 "$SOURCE_DIR/tests/integration/printed_commands.py" --run . --record record.json "$pages/slurm.md"
expect grep -qx '#SBATCH --nodes=2' job.sbatch
expect test -s chain.sbatch -a ! -e runs/chain/metrics.jsonl
expect grep -q '"mesh":"pp1 dp2 cp1 tp1"' runs/job/metrics.jsonl
expect grep -q '"from_step":100' runs/job/metrics.jsonl
expect grep -qx 'step 150' runs/job/FINISHED
expect test -e runs/job/STOP
expect test -z "$(squeue --noheader)"

expectations_met
