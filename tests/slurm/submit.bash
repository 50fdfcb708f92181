#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# fourfold submit against a real Slurm of four nodes: what it prints, what it submits, what it refuses.
# Usage: submit.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 4
unset FOURFOLD_MPI # submit knows what this build needs
write_run
mesh=(--set mesh.dp=2 --set mesh.tp=2 --set mesh.pp=2 --set train.micro_batch=2)

# go ARGUMENT...: submits; prints the number of the job.
go() {
  "$fourfold" submit run.toml "$@" --go 2>"$errors" || echo "submit ended with $?: $(cat "$errors")"
}

# Looking at the script does nothing.
expect_exit 0 "$fourfold" submit run.toml --nodes 4 --time 5 "${mesh[@]}"
expect_stdout '#SBATCH --nodes=4' && expect_stdout '#SBATCH --ntasks-per-node=2' && expect_stdout "export FOURFOLD_MPI='pmi2'"
expect_stderr '4 nodes: mesh pp2 dp2 cp1 tp2, micro-batches of 2'
expect test ! -e run
expect test -z "$(squeue --noheader)"
expect_stderr "mkdir -p '$PWD/run' ("
# sbatch takes it as it is printed.
cp "$output" mine.sbatch
mkdir run
job=$(sbatch --parsable mine.sbatch)
expect_job "$job" 120 COMPLETED 0
expect grep -qx 'step 8' run/FINISHED

# Submitted: eight ranks on four nodes.
job=$(go --nodes 4 --time 5 "${mesh[@]}" --set log.dir=sent)
expect_job "$job" 120 COMPLETED 0
expect grep -qx 'step 8' sent/FINISHED
expect grep -q 'outcome: finished, exit code 0' "sent/fourfold-sent-$job.log"
expect test -s sent/submit.sbatch
expect grep -q '"mesh":"pp2 dp2 cp1 tp2"' sent/metrics.jsonl
# There is nothing left to do, and nothing is queued for it.
expect_exit 0 "$fourfold" submit run.toml --nodes 4 "${mesh[@]}" --set log.dir=sent --go
expect_stderr 'the run is finished'
expect_no_stdout '[0-9]'
touch sent/STOP
expect_exit 93 "$fourfold" submit run.toml --nodes 4 "${mesh[@]}" --set log.dir=sent --set train.steps=9 --go

# What could not run is refused before anything is queued: limits of the partition, files that are not there, keys that a start refuses.
expect_exit 78 "$fourfold" submit run.toml --partition short --nodes 2 --tasks-per-node 1 --time 31 --set log.dir=long --go
expect_stderr '--time=31: partition short ends its jobs after 30:00'
expect_exit 78 "$fourfold" submit run.toml --partition short --nodes 3 --tasks-per-node 1 --time 5 --set log.dir=long --go
expect_stderr '--nodes=3: a job of partition short has 2 at most'
expect_exit 78 "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --set 'data.train=["gone"]' --set log.dir=long --go
expect_stderr 'data.train = "gone": there is no such file'
expect_exit 0 "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --set 'data.train=["gone"]' --set log.dir=long --skip-path-checks
expect_stderr 'data.train = "gone" is not to be seen on this node'
expect_exit 0 "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --set 'data.train=["/not-mounted-here/tokens"]' --set log.dir=long
expect_stderr 'data.train = "/not-mounted-here/tokens" is not to be seen on this node'
touch file
expect_exit 78 "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --set checkpoint.dir=file/below/it --set log.dir=long --go
expect_stderr "checkpoint.dir = \"file/below/it\" cannot be made ($PWD/file is no folder)"
expect_exit 78 "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --set checkpoint.dir=file/../it --set log.dir=long --go
expect_stderr "checkpoint.dir = \"file/../it\" cannot be made ($PWD/file is no folder)"
expect_exit 0 "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --set checkpoint.dir=/not-mounted-here/it --set log.dir=long
expect_stderr 'checkpoint.dir = "/not-mounted-here/it" is not to be seen on this node'
for go in '' --go; do
  # shellcheck disable=SC2086  # none or one word
  expect_exit 78 "$fourfold" submit run.toml --nodes 4 "${mesh[@]}" --set log.dir=sent --set optim.lr=0.5 --set train.steps=9 $go
  expect_stderr 'optim.lr: '
done
# Unless it is meant.
expect rm sent/STOP
job=$(go --nodes 4 --time 5 "${mesh[@]}" --set log.dir=sent --set optim.lr=0.5 --set train.steps=9 --allow-change optim.lr)
expect_job "$job" 120 COMPLETED 0
expect grep -qx 'step 9' sent/FINISHED
expect test ! -e long
expect test -z "$(squeue --noheader)"

# On what there is: three nodes are busy, and the axes of the model are kept on the fourth.
busy=$(sbatch --parsable --nodes=3 --exclusive --output=busy.log --wrap='sleep 300')
until_holds 30 is_running "$busy"
# Replicas divide the batch of 8: one of three nodes would be left.
expect_exit 0 "$fourfold" submit run.toml --nodes 1-4 --tasks-per-node 2 --time 5 --set mesh.tp=2 --set mesh.dp=auto --set log.dir=small
expect_stderr 'with 3 nodes some would be idle'
job=$(go --nodes 1-4 --tasks-per-node 2 --time 5 --set mesh.tp=2 --set log.dir=small)
expect_job "$job" 120 COMPLETED 0
expect grep -q '"mesh":"pp1 dp1 cp1 tp2"' small/metrics.jsonl
expect scancel "$busy"

# A chain of two jobs at most, of which both are stopped: the second goes on under the same script, and no third is queued.
export FOURFOLD_STUCK_AFTER=0
job=$(go --nodes 2 --tasks-per-node 1 --time 5 --chain 2 --set train.steps=100000 --set log.dir=linked)
# of the newest start: it has made steps.
trains() { python3 -c 'import json, sys
records = [json.loads(line) for line in open("linked/metrics.jsonl")]
starts = [i for i, one in enumerate(records) if one["event"] in ("start", "resume")]
sys.exit(not (len(starts) == int(sys.argv[1]) and len(records) > starts[-1] + 20))' "$1"; }
for start in 1 2; do
  until_holds 90 trains "$start" || complain "job $start of the chain does not train"
  expect test "$(squeue --noheader --name=fourfold-linked | wc -l)" -eq $((3 - start))
  # Jobs of one name wait for each other, and two runs' would.
  expect_exit 78 "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --chain 2 --set log.dir=elsewhere/linked --go
  expect_stderr 'is called fourfold-linked, too'
  expect test ! -e elsewhere
  # Neither another chain of the run nor a single job of it, which its lease refuses, changes the chain.
  cp linked/chain.sbatch before.sbatch
  expect_exit 78 "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --chain 2 --set log.dir=linked --go
  expect_stderr 'of a chain of this run already'
  expect_exit 78 "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --chain 2 --name other --set log.dir=linked --go
  expect_stderr 'of a chain of this run already'
  expect_exit 78 "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --time 5 --name other --set log.dir=linked --go
  expect_stderr 'of this run is in the queue already'
  job=$(go --nodes 1 --tasks-per-node 1 --time 5 --name other --set log.dir=linked --beside)
  expect_job "$job" 60 FAILED 78
  expect cmp linked/chain.sbatch before.sbatch
  expect scancel --signal=USR2 "$(squeue --noheader --name=fourfold-linked --states=RUNNING --format=%A)"
done
until_holds 60 no_jobs_of fourfold-linked || complain "jobs are left: $(squeue)"
expect grep -q 'saved and stopped: signal' linked/exit.json
expect test "$(grep -c '"event":"begin"' linked/attempts.jsonl)" -eq 2
expect grep -q 'the last of the 2 jobs of the chain' linked/fourfold-linked-*.log

# Nor one of another run that would save in the same folder.
job=$(go --nodes 1 --tasks-per-node 1 --time 5 --set log.dir=apart --set checkpoint.dir=saves --set checkpoint.every_steps=1000000 \
  --set train.steps=1000000)
until_holds 60 has_steps apart 2 || complain "it does not train"
expect_exit 78 "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --time 5 --set log.dir=other --set checkpoint.dir=saves --go
expect_stderr "job $job saves in checkpoint.dir ($PWD/saves)"
expect test ! -e other
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75

# A chain's script is its user's, as it is printed: each job submits the one that was submitted.
expect_exit 0 "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --time 5 --chain 2 --name kept --set log.dir=kept \
  --set train.steps=1000000 --sbatch=--comment=mine
cp "$output" mine.sbatch
mkdir kept
job=$(sbatch --parsable mine.sbatch)
until_holds 60 has_steps kept 5 || complain "it does not train"
next=$(squeue --noheader --name=kept --states=PENDING --format='%o %k')
expect test "${next%% fourfold-run-file=*}" = "$PWD/mine.sbatch mine"
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
until_holds 60 has_begun kept 2 || complain "the chain does not go on: $(squeue)"
expect scancel --name=kept
until_holds 60 no_jobs_of kept || complain "jobs are left: $(squeue)"
expect grep -q 'the last of the 2 jobs of the chain' kept/kept-*.log

# A job that has begun by itself is known by the run file in its comment.
job=$(sbatch --parsable --nodes=1 --ntasks=1 --time=5 "$slurm/train.sbatch" run.toml --set log.dir=alone --set train.steps=1000000)
until_holds 60 has_steps alone 5 || complain "it does not train"
expect_exit 78 "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --set log.dir=alone --set train.steps=1000000 --go
expect_stderr "job $job of this run is in the queue already ($PWD/alone/submitted/$job/run.toml)"
expect scancel "$job"
expect_job "$job" 60 CANCELLED

# Whatever the directory is called, submit knows where the log will be.
for dir in 'lr%3j' 'two words'; do
  job=$(go --nodes 1 --tasks-per-node 1 --time 5 --set log.dir="$dir")
  expect_job "$job" 60 COMPLETED 0
  log=$(sed -n 's/.* shows the job, \(.*\) is its log/\1/p' "$errors")
  expect grep -q 'outcome: finished' "$log"
done

# A site's file is read by the job.
printf 'export FOURFOLD_MPI=pmi2\necho "this site says hello"\n' >here.sh
job=$(go --nodes 1 --tasks-per-node 1 --time 5 --site ./here.sh --set log.dir=sited)
expect_job "$job" 60 COMPLETED 0
expect grep -q 'this site says hello' "sited/fourfold-sited-$job.log"

# What lies in the environment changes neither the job nor its chain; what the site's file sets reaches the ranks.
job=$(SBATCH_EXPORT=NONE SBATCH_JOB_NAME=other SBATCH_PARTITION=urgent SBATCH_TIMELIMIT=7 SBATCH_NICE=3 SBATCH_NO_REQUEUE=1 SBATCH_WAIT=1 \
  FOURFOLD_LINK=7 FOURFOLD_CHAIN=5 FOURFOLD_DEADLINE=4000000000 FOURFOLD_NODES=2-4 FOURFOLD_TASKS_PER_NODE=1 go --nodes 1 --tasks-per-node 2 --time 5 --partition test \
  --chain 2 --name shielded --sbatch=--nice=8 --site ./here.sh --set log.dir=shielded --set train.steps=1000000)
expect grep -q 'not handed on to the job.*FOURFOLD_CHAIN, FOURFOLD_DEADLINE, FOURFOLD_LINK, .*SBATCH_PARTITION, SBATCH_NICE' "$errors"
until_holds 60 has_steps shielded 5 || complain "it does not train"
next=$(squeue --noheader --name=shielded --states=PENDING --format=%A)
for one in "$job" "$next"; do
  for fact in JobName=shielded Partition=test TimeLimit=00:05:00 Nice=8; do
    expect grep -q "[ =]*$fact " <(scontrol --oneliner show job "$one")
  done
done
expect grep -q '"mesh":"pp1 dp2 cp1 tp1"' shielded/metrics.jsonl
for process in $(ranks_of "$job"); do
  for variable in FOURFOLD_CHAIN="$job" FOURFOLD_MPI=pmi2 'FOURFOLD_DEADLINE=[0-9]*' FOURFOLD_WARNING_S=0; do
    expect grep -qzx "$variable" "/proc/$process/environ"
  done
  expect_exit 1 grep -qz '^FOURFOLD_LINK=' "/proc/$process/environ"
  expect_exit 1 grep -qzx 'FOURFOLD_DEADLINE=4000000000' "/proc/$process/environ"
done
expect test "$(ranks_of "$job" | wc -l)" -eq 2
expect scancel --name=shielded
until_holds 60 no_jobs_of shielded || complain "jobs are left: $(squeue)"

# refused CODE TEXT ARGUMENT...: and nothing is left behind.
refused() {
  local code=$1 text=$2
  shift 2
  expect_exit "$code" "$fourfold" submit run.toml --set log.dir=refused "$@" --go
  expect_stderr "$text"
  expect test ! -e refused
  expect test -z "$(squeue --noheader)"
}
expect_exit 0 "$fourfold" submit run.toml --nodes 2-9 --tasks-per-node 1 --set mesh.dp=auto --set log.dir=wide
expect_stderr '--nodes=2-9: Slurm gives a job 4 at most' && expect_stderr '4 nodes: mesh ' && expect_no_stderr '9 nodes'
expect_stdout '#SBATCH --nodes=2-9'
expect_exit 0 "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --set log.dir=wide --sbatch=--mem=100T
expect_stderr '--mem=100T: nodes of partition test have as little as'
FOURFOLD_STUCK_AFTER=x refused 64 'FOURFOLD_STUCK_AFTER=x is not a whole number' --nodes 1 --tasks-per-node 1
FOURFOLD_STUCK_AFTER=08 refused 64 'FOURFOLD_STUCK_AFTER=08 is not a whole number' --nodes 1 --tasks-per-node 1
FOURFOLD_MOST_STARTS=10000000000 refused 64 'is not a whole number' --nodes 1 --tasks-per-node 1
FOURFOLD_REQUEUE=yes refused 64 'FOURFOLD_REQUEUE=yes is not 0 or 1' --nodes 1 --tasks-per-node 1
refused 64 '--sbatch=--no-requeue and --requeue contradict each other' --nodes 1 --tasks-per-node 1 --requeue --sbatch=--no-requeue
refused 78 'partition test has 4' --nodes 5 --tasks-per-node 1
refused 78 'have 2 CPUs' --nodes 2 --tasks-per-node 4
refused 78 'make 8 ranks, and the mesh has 4; give --nodes=2' --nodes 4 --tasks-per-node 2 --set mesh.dp=2 --set mesh.tp=2
refused 78 'add --set mesh.dp=auto' --nodes 2-4 --tasks-per-node 1 --set mesh.dp=2
refused 78 'there is no partition "nowhere"' --nodes 2 --partition nowhere
refused 78 'this Slurm has none of that name' --nodes 2 --mpi pmi9
refused 78 'every task would train by itself' --nodes 2 --mpi none
refused 78 'choose one of infiniband, mpich, slingshot' --nodes 2 --site nowhere
refused 78 'does not fit into 2 nodes' --nodes 2 --node-memory 0.0001
refused 78 'did you mean "steps"' --nodes 2 --set train.stepz=3
refused 78 'data.train' --nodes 2 --set 'data.train=[]'
refused 64 'no time limit of Slurm' --nodes 2 --time 8h
refused 64 'no number of nodes' --nodes 4-2
refused 64 'cannot stand in a line of #SBATCH' --nodes 2 '--sbatch=--comment=two words'
refused 64 'give --nodes' --tasks-per-node 2
expect_exit 64 "$fourfold" submit run.toml --nodes 2 --chain 2 --requeue
# What only sbatch can know it says itself.
expect_exit 78 "$fourfold" submit run.toml --nodes 2 --account nobody --sbatch=--mem=99999999 --set log.dir=huge --go
expect_stderr 'sbatch refuses'
# Where there is no Slurm the script can still be looked at.
expect_exit 0 env PATH=/nowhere "$fourfold" submit run.toml --nodes 2 --tasks-per-node 4
expect_stderr 'there is no sinfo here'
expectations_met
