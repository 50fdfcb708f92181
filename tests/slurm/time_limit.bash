#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# A chain of jobs of one minute on a real Slurm, for a run that needs three of them: each saves in time, the next goes on, no
# step is lost or made twice, and the losses are those of a run without an end. Usage: time_limit.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 2
write_run
options=(--set train.global_batch=256 --set checkpoint.every_steps=0)
# A job of a minute makes 25 s of steps or so: the run keeps half a minute for its end.
expect_exit 0 ranks 2 train run.toml "${options[@]}" --set log.dir=short --set train.steps=100
steps=$(python3 -c 'import json, statistics
steps = [json.loads(line) for line in open("short/metrics.jsonl")]
print(round(62 / statistics.median(one["step_s"] for one in steps if one["event"] == "step")))')
options+=(--set train.steps="$steps")
expect_exit 0 ranks 2 train run.toml "${options[@]}" --set log.dir=calm
losses calm/metrics.jsonl >calm.txt

# Slurm looks at the clock every 30 s: a longer warning would come with the start of a job of one minute.
export SBATCH_SIGNAL=USR2@5
sbatch --quiet --nodes=2 --ntasks=2 --time=1 --job-name=minutes "$slurm/chain.sbatch" run.toml "${options[@]}" --set log.dir=chained
until_holds 600 test -e chained/FINISHED || complain "the chain did not come to its end: $(squeue; tail -n 5 minutes-*.log)"
until_holds 30 no_jobs_of minutes || complain "jobs are left: $(squeue)"
losses chained/metrics.jsonl >chained.txt
expect cmp calm.txt chained.txt
expect test "$(steps_made chained/metrics.jsonl)" -eq "$steps"
expect python3 -c 'import json
attempts = [json.loads(line) for line in open("chained/attempts.jsonl")]
begins = [one for one in attempts if one["event"] == "begin"]
ends = [one for one in attempts if one["event"] == "end"]
assert len(begins) == len(ends) >= 2, attempts
print(len(begins), "jobs")
assert all(one["code"] == 75 and one["reason"] == "saved and stopped: time limit" for one in ends[:-1]), ends
assert ends[-1]["code"] == 0
assert [one["from_step"] for one in begins[1:]] == [one["step"] for one in ends[:-1]], attempts'
expectations_met
