#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# A real Slurm that keeps accounts (slurmdbd over MariaDB): they say why a start has ended where nothing else does, and nothing
# waits for them where they do not answer. Usage: accounting.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
for program in slurmdbd mariadbd sacct; do
  command -v "$program" >/dev/null || { echo "there is no $program here" && exit 77; }
done
export TEST_CLUSTER_ACCOUNTING=1 TEST_CLUSTER_MEMORY=cgroup TEST_CLUSTER_MEM_PER_CPU=200
begin_cluster "$1" 3
write_run

# Killed for memory, and the job's log, with the line that says so, goes nowhere.
write_greedy
FOURFOLD=$PWD/greedy FOURFOLD_SLURM=$slurm sbatch --nodes=2 --ntasks-per-node=1 --time=5 --job-name=eats --output=/dev/null \
  "$slurm/chain.sbatch" run.toml --set train.steps=100000 --set log.dir=eats >"$output"
until_holds 90 no_jobs_of eats || complain "jobs are left: $(squeue)"
expect grep -q 'killed for memory on node1: its ranks there took all that they may, the largest [12][0-9][0-9] MiB' eats/attempts.jsonl
expect has_begun eats 1
expect_exit 0 "$fourfold" status eats
expect_stdout 'another start alone gains nothing'

# All nodes of a job fail: nobody is left to say so, and the job goes back into the queue.
job=$(FOURFOLD_REQUEUE=1 sbatch --parsable --nodes=1 --time=5 "$slurm/train.sbatch" run.toml \
  --set train.steps=1000000 --set log.dir=gone)
until_holds 60 has_steps gone 5 || complain "it does not train"
node=$(squeue --noheader --jobs="$job" --format=%N)
expect cluster kill-node "${node#node}"
until_holds 120 has_begun gone 2 || complain "it has not gone on: $(squeue)"
expect grep -q "Slurm says NODE_FAIL: one of its nodes failed" gone/attempts.jsonl
touch gone/STOP
until_holds 60 is_over "$job" || complain "job $job is $(state_of "$job")"
expect cluster start-node "${node#node}"

# A rank is killed while nobody answers for the accounts: what is known is said, and the next start begins.
job=$(FOURFOLD_REQUEUE=1 sbatch --parsable --nodes=1 --time=5 "$slurm/train.sbatch" run.toml \
  --set train.steps=1000000 --set log.dir=mute)
until_holds 60 has_steps mute 5 || complain "it does not train"
expect cluster kill-dbd
killed=$(ranks_of "$job" 0)
expect kill -KILL "$killed"
until_holds 60 has_begun mute 2 || complain "it has not gone on: $(squeue)"
expect grep -q '"event":"end".*killed without a word' mute/attempts.jsonl
touch mute/STOP
until_holds 60 is_over "$job" || complain "job $job is $(state_of "$job")"
expectations_met
