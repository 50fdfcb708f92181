# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Ranks with a device each, on which they wait, rather than in a call: whatever one does, the run ends soon, and names the
# rank and the call. And what can be wrong when they come together.
set -euo pipefail
program=$(readlink -f "$1")
mpiexec=$2
# shellcheck source=tests/integration/expect.bash
source "$(dirname "$0")/../../../integration/expect.bash"
work=$(mktemp -d)
cd "$work"
export FOURFOLD_EMULATED_GPUS=4

expect_exit 0 "$mpiexec" -n 4 "$program"
expect_stdout 'came to the end'
expect_stderr_lines 0
expect test ! -e hang.json
CUDA_MODULE_LOADING=LAZY expect_exit 0 "$mpiexec" -n 2 "$program"
expect_stderr 'CUDA loads kernels when they first run'
expect_stderr_lines 1

# A killed rank whose launcher does not see it, as Slurm does not end the others either; Hydra would.
cat >unnoticed <<END
#!/bin/bash
"$program" "\$@"
code=\$?
[[ \$code -ne 137 ]] || sleep 50
exit \$code
END
chmod +x unnoticed

# hangs CODE KIND RANK SECONDS TEXT...: it is ended by then, with CODE; stderr and the report name the rank and say TEXT.
hangs() {
  local code=$1 kind=$2 rank=$3 seconds=$4 begun=$SECONDS text
  shift 4
  rm -f hang.json
  expect_exit "$code" timeout 60 "$mpiexec" -n 4 ./unnoticed "$kind" "$rank"
  [[ $((SECONDS - begun)) -le $seconds ]] || complain "$kind took $((SECONDS - begun)) s"
  expect_no_stdout 'came to the end'
  for text in "rank $rank on " "$@"; do expect_stderr "$text"; done
  expect python3 -c 'import json, sys
report = json.load(open("hang.json"))
rank = int(sys.argv[1])
assert [one["rank"] for one in report["culprits"]] == [rank], report["culprits"]
waiting = [one for one in report["ranks"] if one["rank"] in report["waiting"]]
assert len(waiting) >= 2, report["waiting"]
for one in waiting:
    assert one["waits_in"]["communicator"] in ("world", "pair"), one
    assert one["waits_in"]["site"].startswith("hang_on_devices.cpp:"), one' "$rank"
}

hangs 86 stop 3 14 'has given no sign of life' 'its machine answers: the process is stopped'
hangs 86 sleep 1 14 'has not come' 'step 20' 'wait in all_reduce #21 of'
hangs 86 recv 0 14 "is in recv #1 of 'pair', from rank 1" 'another branch'
hangs 86 kill 2 14 'has ended without a word'
FOURFOLD_EMULATED_NCCL_BLIND=1 hangs 86 kill 2 14 'has ended without a word'

# Without a watch NCCL is believed, where it notices.
expect_exit 85 timeout 60 "$mpiexec" -n 4 ./unnoticed kill 2 unwatched
expect_stderr "told of 85: NCCL: communicator 'world' failed"
expect_stderr "NCCL: communicator 'world' failed (remote process exited or there was a network error)"

# A communicator that is not there in time is given up, with what NCCL still makes of it.
FOURFOLD_EMULATED_NCCL_SPLITS_S=30 expect_exit 86 timeout 60 "$mpiexec" -n 4 "$program" none -1 unwatched 1
expect_stderr "NCCL: ncclCommSplit of 'world' into 'pair' has not come to an end in 1 s"

# A connection breaks, and everybody lives. The watching thread notices, or a call that comes just then.
FOURFOLD_EMULATED_NCCL_BREAKS_S=1 expect_exit 85 timeout 60 "$mpiexec" -n 4 "$program"
expect_stderr 'rank 3 on '
expect_stderr 'cannot communicate any more: NCCL: '
expect_stderr 'remote process exited or there was a network error'
expect test -e hang.json

# What cannot be is refused by all, once.
FOURFOLD_EMULATED_GPUS=1 expect_exit 78 timeout 60 "$mpiexec" -n 2 "$program"
expect_stderr 'ranks 0 and 1 have the same GPU'
FOURFOLD_EMULATED_GPUS=3 expect_exit 78 timeout 60 "$mpiexec" -n 4 "$program"
expect_stderr '4 ranks on this machine, but 3 GPUs'
FOURFOLD_EMULATED_GPUS=no-driver expect_exit 78 timeout 60 "$mpiexec" -n 2 "$program"
expect_stderr 'there is no NVIDIA driver'
FOURFOLD_EMULATED_GPU_SM=75 expect_exit 78 timeout 60 "$mpiexec" -n 2 "$program"
expect_stderr 'is too old'
for version in 21805 30001; do
  FOURFOLD_EMULATED_NCCL_VERSION=$version expect_exit 78 timeout 60 "$mpiexec" -n 2 "$program"
  expect_stderr 'the NCCL that was loaded is'
  expect_stderr 'needs 2.23.4 or a later 2.x'
done
expect_exit 78 timeout 60 "$mpiexec" -n 2 "$program" : -n 1 -env FOURFOLD_EMULATED_NCCL_VERSION 22703 "$program"
expect_stderr 'rank 0 has loaded NCCL 2.'
expect_stderr 'rank 2 NCCL 2.27.3'
FOURFOLD_EMULATED_NCCL_SAYS="Cuda failure 2 'out of memory'" FOURFOLD_EMULATED_GPU_FAIL=ncclAllReduce:5:1 \
  expect_exit 78 timeout 60 "$mpiexec" -n 2 "$program"
expect_stderr "(unhandled cuda error; Cuda failure 2 'out of memory') ("
expect_stderr ' GiB are free); free some there'
FOURFOLD_EMULATED_GPU_FAIL=ncclGetUniqueId:1:2 expect_exit 85 timeout 60 "$mpiexec" -n 2 "$program"
expect_stderr 'NCCL: ncclGetUniqueId failed (unhandled system error)'
FOURFOLD_EMULATED_GPU_FAIL=ncclCommInitRankConfig:1:1 expect_exit 85 timeout 60 "$mpiexec" -n 2 "$program"
expect_stderr "NCCL: ncclCommInitRankConfig of 'world' failed (unhandled cuda error)"
FOURFOLD_EMULATED_GPU_FAIL=ncclAllReduce:5:4 expect_exit 70 timeout 60 "$mpiexec" -n 2 "$program"
expect_stderr 'this is a bug'
expect_exit 70 timeout 60 "$mpiexec" -n 2 "$program" unexpected 1
expect_stderr "a message of 'pair' from rank 1 to 0 with tag 7 was not expected"

expectations_met
