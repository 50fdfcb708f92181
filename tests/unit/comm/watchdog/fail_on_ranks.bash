# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# One message from one rank, the right exit code, and nobody hangs, however a program of several ranks fails.
set -euo pipefail
program=$1
mpiexec=$2
contracts=$3
# shellcheck source=tests/integration/expect.bash
source "$(dirname "$0")/../../../integration/expect.bash"

count_errors() { [[ $(grep -c 'error:' "$errors") -eq $1 ]] || complain "not $1 messages"; }

expect_exit 0 "$mpiexec" -n 3 "$program"
expect_stdout 'came to the end'
count_errors 0

expect_exit 65 "$mpiexec" -n 4 "$program" all
expect_stderr '[rank 0 of 4 on '
expect_stderr 'error: the file is damaged'
count_errors 1

expect_exit 73 "$mpiexec" -n 3 "$program" last
expect_stderr '[rank 2 of 3 on '
count_errors 1

# A rank that is killed says nothing; the launcher ends the others, which wait for it in memory they share.
code=0
timeout 30 "$mpiexec" -n 3 "$program" vanish >"$output" 2>"$errors" </dev/null || code=$?
expect test $code -ne 0 -a $code -ne 124
expect_no_stdout 'came to the end'

# A rank that crashes does so at once, without a handler of the transport's that may hang.
code=0
timeout 30 "$mpiexec" -n 3 "$program" crash >"$output" 2>"$errors" </dev/null || code=$?
expect test $code -ne 0 -a $code -ne 124
if ! grep -qa __asan_init "$program"; then  # AddressSanitizer has its handler, and lets UCX have one
  expect_no_stdout 'Caught signal'
  expect test "$(grep -c 'Caught signal' "$errors")" -eq 0
fi

if [[ $contracts == ON ]]; then
  expect_exit 70 "$mpiexec" -n 3 "$program" disagree
  expect_stderr 'all_reduce(sum, f32 x 5)'
  count_errors 1
fi

# One rank alone: the code of the error, no abort.
expect_exit 65 "$mpiexec" -n 1 "$program" all
expect_stderr 'fail_on_ranks: error: the file is damaged'
expect_exit 0 "$program"

# Started as singletons by a launcher that meant four: rank 0 says so, the others are silent.
expect_exit 78 env SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 "$program"
expect_stderr '4 processes were started, but each is rank 0 of 1'
expect_stderr 'srun --mpi='
expect_no_stdout 'came to the end'
expect_exit 78 env SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=2 "$program"
count_errors 0

# Over a network, where the MPI_Finalize of older MPICHs hangs. Other MPIs and UCX-less ones ignore the variables.
for _ in 1 2 3; do
  expect_exit 0 env UCX_TLS=tcp,self UCX_NET_DEVICES=lo timeout 30 "$mpiexec" -n 4 "$program" exchange
  expect_stdout 'came to the end'
  count_errors 0
done

expectations_met
