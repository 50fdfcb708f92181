#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The end of a run whose ranks meet over TCP, on a real Slurm whose nodes share no memory: MPICH 4.0.2 often hangs in
# MPI_Finalize there, and fourfold does not. Usage: finalize.bash BUILD_DIR
set -u
export TEST_CLUSTER_NS=full
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 4
[[ $(srun --nodes=1 readlink /proc/self/ns/ipc) != $(readlink /proc/self/ns/ipc) ]] ||
  { echo "nodes cannot be kept apart here" && exit 77; }
write_run

for tasks in 4 8; do
  for _ in $(seq 4); do
    expect_exit 0 timeout 60 srun --nodes=4 --ntasks="$tasks" --mpi=pmi2 --kill-on-bad-exit=1 "$1/bin/hang_on_ranks"
    expect_stdout 'came to the end'
  done
done
# So does a whole job, whose exit code counts.
job=$(sbatch --parsable --nodes=4 --ntasks=4 --time=5 "$slurm/train.sbatch" run.toml --set mesh.tp=2)
expect_job "$job" 120 COMPLETED 0
expect grep -qx 'step 8' run/FINISHED
expectations_met
