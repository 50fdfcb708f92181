# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Whatever one of several ranks does, the run ends soon, with 86, and names the rank and the call.
set -euo pipefail
program=$(readlink -f "$1")
mpiexec=$2
# shellcheck source=tests/integration/expect.bash
source "$(dirname "$0")/../../../integration/expect.bash"
work=$(mktemp -d)
cd "$work"

expect_exit 0 "$mpiexec" -n 4 "$program"
expect_stdout 'came to the end'
expect test ! -e hang.json
expect_exit 0 "$mpiexec" -n 1 "$program"

# hangs KIND RANK SECONDS TEXT...: it is ended by then, with 86; stderr and the report name the rank and say TEXT. The
# program goes well for a second; its limits are 2.5 s.
hangs() {
  local kind=$1 rank=$2 seconds=$3 begun=$SECONDS text
  shift 3
  rm -f hang.json
  expect_exit 86 timeout 60 "$mpiexec" -n 4 "$program" "$kind" "$rank"
  [[ $((SECONDS - begun)) -le $seconds ]] || complain "$kind took $((SECONDS - begun)) s"
  expect_no_stdout 'came to the end'
  for text in "rank $rank on " "$@"; do expect_stderr "$text"; done
  expect python3 -c 'import json, sys
report = json.load(open("hang.json"))
rank = int(sys.argv[1])
assert [one["rank"] for one in report["culprits"]] == [rank], report["culprits"]
assert [one["rank"] for one in report["ranks"]] == [0, 1, 2, 3]
waiting = [one for one in report["ranks"] if one["rank"] in report["waiting"]]
assert len(report["waiting"]) >= int(sys.argv[2]), report["waiting"]
for one in waiting:
    assert one["waits_in"]["communicator"] in ("world", "pair")
    assert one["waits_in"]["site"].startswith("hang_on_ranks.cpp:")
    assert any("main" in line for line in one["stack"]), one["stack"]
    assert len(one["calls"]) > 20
    # Ranks that nothing holds up have gone on between the verdict and their own word.
    assert sys.argv[2] == "0" or one["calls"][-1]["left"] is False
    assert one["activity"].startswith("step "), one["activity"]' "$rank" "${waiting:-3}"
}

hangs stop 3 14 'has given no sign of life' 'its machine answers: the process is stopped' 'its last was all_reduce #'
hangs stop 0 20 'has given no sign of life'
hangs sleep 1 14 'has not come' 'step 20' "ranks 0, 2-3 wait in all_reduce #"
hangs axis 3 14 "is in all_reduce #" "of 'pair'" 'another branch'
hangs recv 0 14 "is in recv #1 of 'pair', from rank 1" 'another branch'
# Where ranks share memory, calls that are not the same get through, and nobody would ever know.
waiting=0
hangs barrier 2 14 "called other operations than the other ranks of 'world' among #" 'another branch'
hangs bytes 1 14 "called other operations than the other ranks of 'world' among #" 'another branch'

# An error that a rank reports itself is no hang, and keeps its code; nor is a rank that the launcher sees die, as
# mpiexec does at once and srun does not (tests/slurm).
rm -f hang.json
expect test ! -e ended-by-another # neither by a run that came to its end, nor by a verdict
expect_exit 65 timeout 60 "$mpiexec" -n 4 "$program" throw 2
expect_stderr 'the file is damaged'
expect grep -qx heard ended-by-another # in time, though no destructor runs there
expect test "$(grep -c 'Abort(' "$errors")" -eq 0 # of MPI's: it says nothing that was not said
expect test ! -e hang.json
expect_exit 9 timeout 60 "$mpiexec" -n 4 "$program" kill 2
# Of ranks that Hydra ends because one is gone it tells 9, the signal, or nothing at all (0): it is the end that counts.
expect test "$(timeout 60 "$mpiexec" -n 4 "$program" exit 2 2>&1 | grep -c 'came to the end'; echo "${PIPESTATUS[0]/0/9}")" = $'0\n9'

expectations_met
