#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The batch script of docs/slurm.md, as it stands there, on a real Slurm: it ends with a save before its time is over, and goes
# on. And what is said there of jobs that are put back by hand. Usage: own_script.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 2
write_run
# shellcheck disable=SC2016 # fences
sed -n '/^## A batch script/,/^## What/p' "${SOURCE_DIR:?}/docs/slurm.md" | sed -n '/^```bash$/,/^```$/p' | sed '/^```/d' >own.sbatch
expect grep -q '^srun --mpi=' own.sbatch
sed -i 's/^steps = 8$/steps = 100000/' run.toml

job=$(sbatch --parsable --time=1 own.sbatch)
until_holds 30 has_steps run 5 || complain "it does not train: $(cat "slurm-$job.out")"
expect_job "$job" 120 FAILED 75
expect grep -q 'saved and stopped: time limit' run/exit.json
saved=$(python3 -c 'import json; print(json.load(open("run/exit.json"))["step"])')
# Not earlier than it had to: a save takes a moment, and checkpoint.margin_s is 5 s.
began=$(date --date="$(scontrol --oneliner show job "$job" | sed -n 's/.* StartTime=\([^ ]*\).*/\1/p')" +%s)
expect python3 -c 'import json, sys
left_s = int(sys.argv[1]) + 60 - json.load(open("run/exit.json"))["time"]
assert 3 < left_s < 15, left_s' "$began"
job=$(sbatch --parsable --time=1 own.sbatch)
until_holds 60 has_steps run $((saved + 5)) || complain "it does not go on: $(cat "slurm-$job.out")"
expect grep -q "\"event\":\"resume\".*\"from_step\":$saved" run/metrics.jsonl
# What Slurm tells the steps.
expect scancel --signal=USR2 "$job"
expect_job "$job" 30 FAILED 75

# A job of a chain is not put back, and says so.
job=$(sbatch --parsable --nodes=1 --time=5 --job-name=linked "$slurm/chain.sbatch" run.toml --set train.steps=1000000 --set log.dir=linked)
until_holds 60 has_steps linked 5 || complain "it does not train"
expect_exit 1 scontrol requeue "$job"
expect has_begun linked 1
expect scancel --name=linked
until_holds 60 no_jobs_of linked || complain "jobs are left: $(squeue)"
expectations_met
