#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Whoever goes on writing in their run file while a chain or a requeued job runs, removes it, or has saved half of it, changes
# nothing of that run: it ends with the losses that it would have had, and where its log.dir was. Usage: kept_run.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 3
write_run
sed -i 's/^steps = 8/steps = 600/; s/^every_steps = 4/every_steps = 100/; s/^global_batch = 8/global_batch = 32/' run.toml
cp run.toml first.toml
expect_exit 0 ranks 2 train run.toml --set log.dir=calm
losses calm/metrics.jsonl >calm.txt

# expect_calm DIR: finished, with the losses of the run that nothing happened to.
expect_calm() {
  expect grep -qx 'step 600' "$1/FINISHED"
  losses "$1/metrics.jsonl" >"$1.txt"
  expect cmp calm.txt "$1.txt"
}
# next_experiment: what the user makes of the run file meanwhile.
next_experiment() { sed 's/^lr = .*/lr = 0.5/; s/^steps = .*/steps = 7/; s/^dir = .*/dir = "other"/' first.toml >run.toml; }
# stops_after JOB DIR STEPS
stops_after() {
  until_holds 90 has_steps "$2" "$3" || complain "job $1 does not train: $(tail -n 20 ./*"$1".log "$2"/*"$1".log 2>/dev/null)"
  expect scancel --signal=USR2 "$1"
}

# A chain that `fourfold submit` has queued. The run file is edited before its first job begins, too.
busy=$(sbatch --parsable --nodes=3 --exclusive --output=busy.log --wrap='sleep 300')
until_holds 30 is_running "$busy"
expect_exit 0 env -u FOURFOLD_MPI "$fourfold" submit run.toml --nodes 2 --tasks-per-node 1 --time 5 --chain 3 --name sent --set log.dir=sent --go
job=$(cat "$output")
expect_stderr "it trains what is in $PWD/sent/submitted/"
next_experiment
expect scancel "$busy"
stops_after "$job" sent 50
expect_exit 0 "$fourfold" status sent
expect_stdout "run.toml has changed since: its jobs go on with $PWD/sent/submitted/"
expect_stdout 'submit anew to train what it says now'
rm run.toml
until_holds 90 test -e sent/FINISHED || complain "the chain does not go on: $(tail -n 20 sent/*.log)"
until_holds 30 no_jobs_of sent || complain "jobs are left: $(squeue)"
expect_calm sent
expect test ! -e other

# One begun by the scripts alone, with a log.dir from its run file: the next job finds it although the run file is of another run now.
sed 's/^dir = .*/dir = "chained"/' first.toml >run.toml
job=$(sbatch --parsable --nodes=2 --ntasks-per-node=1 --time=5 --job-name=linked --comment='of my project' "$slurm/chain.sbatch" run.toml)
until_holds 90 has_steps chained 20
next_experiment
expect scancel --signal=USR2 "$job"
until_holds 60 has_begun chained 2 || complain "the chain does not go on: $(tail -n 20 ./*.log)"
second=$(squeue --noheader --name=linked --states=RUNNING --format=%A)
expect grep -q "Comment=of my project fourfold-run-file=$PWD/chained/submitted/$job/run.toml" <(scontrol show job "$job")
expect grep -q "Comment=fourfold-run-file=$PWD/chained/submitted/$job/run.toml" <(scontrol show job "$second")
# A half saved one, and a third job.
head -c 40 first.toml >run.toml
stops_after "$second" chained 60
until_holds 90 test -e chained/FINISHED || complain "the chain does not go on: $(tail -n 20 ./*.log)"
until_holds 30 no_jobs_of linked || complain "jobs are left: $(squeue)"
expect_calm chained
expect test ! -e other

# A job that goes back into the queue, whose run file is gone then.
sed 's/^dir = .*/dir = "requeued"/' first.toml >run.toml
job=$(FOURFOLD_REQUEUE=1 sbatch --parsable --nodes=2 --ntasks-per-node=1 --time=5 "$slurm/train.sbatch" run.toml)
until_holds 90 has_steps requeued 20
rm run.toml
expect scancel --signal=USR2 "$job"
expect_job "$job" 120 COMPLETED 0
expect grep -q 'restart 1' "fourfold-$job.log"
expect_calm requeued

# What trains the run file as it is now: a new job.
next_experiment
job=$(sbatch --parsable --nodes=2 --ntasks-per-node=1 --time=5 "$slurm/train.sbatch" run.toml)
expect_job "$job" 90 COMPLETED 0
expect grep -qx 'step 7' other/FINISHED
# One that its start refuses is not kept: what is mended counts when the same job begins again.
sed 's/^dir = .*/dir = "mended"/; s/^\[log\]/[mesh]\ntp = 3\n[log]/' first.toml >run.toml
job=$(sbatch --parsable --nodes=2 --ntasks-per-node=1 --time=5 "$slurm/train.sbatch" run.toml)
expect_job "$job" 60 FAILED 78
expect test ! -e mended/submitted
expectations_met
