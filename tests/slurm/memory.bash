#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Memory that Slurm gives out, on a real one: `fourfold submit` counts what the job will get, and a rank that takes more is
# killed, which another start would not mend. Usage: memory.bash BUILD_DIR [gather|cgroup]: who counts, slurmstepd or the kernel.
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
form=${2:-gather}
export TEST_CLUSTER_MEMORY=$form TEST_CLUSTER_MEM_PER_CPU=200
begin_cluster "$1" 2
write_run

# A small run fits into what a job gets that asks for nothing.
job=$(env -u FOURFOLD_MPI "$fourfold" submit run.toml --nodes 2 --tasks-per-node 1 --time 5 --set log.dir=small --go 2>"$errors")
expect_job "$job" 60 COMPLETED 0
expect_stderr 'of 0.20 (DefMemPerCPU'

# What would not: refused, with the limit that binds and the option that lifts it.
large=(--set model.hidden=1024 --set model.layers=2 --set model.heads=8)
for go in '' --go; do
  # shellcheck disable=SC2086 # none or one word
  expect_exit 78 env -u FOURFOLD_MPI "$fourfold" submit run.toml --nodes 2 --tasks-per-node 1 "${large[@]}" --set log.dir=large $go
  expect_stderr 'DefMemPerCPU=200'
  expect_stderr '--sbatch=--mem='
done
expect test ! -e large
expect test -z "$(squeue --noheader)"
expect_exit 0 env -u FOURFOLD_MPI "$fourfold" submit run.toml --nodes 2 --tasks-per-node 1 "${large[@]}" --set log.dir=large --sbatch=--mem=1G
expect_stderr 'of 1.00 (--mem=1G)'
expect_exit 0 env -u FOURFOLD_MPI "$fourfold" submit run.toml --nodes 2 --tasks-per-node 1 --cpus-per-task 2 "${large[@]}" --set log.dir=large --sbatch=--mem-per-cpu=500
expect_stderr 'of 0.98 (--mem-per-cpu=500, 2 CPUs)'
expect_exit 64 env -u FOURFOLD_MPI "$fourfold" submit run.toml --nodes 2 --tasks-per-node 1 --sbatch=--mem=much
expect_stderr '--mem=much'

# A rank that takes more than was planned: its job ends with 78, and no other one begins. What takes it here is a process beside
# fourfold in the same task, and the task ends with it.
write_greedy
job=$(FOURFOLD=$PWD/greedy FOURFOLD_SLURM=$slurm sbatch --parsable --nodes=2 --ntasks-per-node=1 --time=5 --job-name=eats "$slurm/chain.sbatch" run.toml \
  --set train.steps=100000 --set log.dir=eats)
until_holds 90 no_jobs_of eats || complain "jobs are left: $(squeue)"
expect grep -q 'killed for memory on node1' eats/attempts.jsonl
expect test "$(grep -c '"event":"begin"' eats/attempts.jsonl)" -eq 1
expect_exit 0 "$fourfold" status eats
expect_stdout 'killed for memory on node1'
expect_stdout '200M for each CPU, the default of the cluster or of partition test: DefMemPerCPU'
expect_stdout 'another start alone gains nothing'
expect_stdout ' 78 '
[[ $form == cgroup ]] || expect_stdout 'and may take 200 MiB'
expect grep -q 'outcome: stop, exit code 78' "eats-$job.log"

# With a limit of the job's own that is named; one task in a batch of its own.
job=$(FOURFOLD=$PWD/greedy FOURFOLD_SLURM=$slurm sbatch --parsable --nodes=2 --ntasks-per-node=1 --time=5 --mem=240M "$slurm/train.sbatch" run.toml \
  --set train.steps=100000 --set log.dir=own)
until_holds 90 is_over "$job" || complain "job $job is not over"
expect_exit 0 "$fourfold" status own
expect_stdout '(--mem=240M of the job)'
expectations_met
