#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The next job of a chain, on a real Slurm: it cannot be submitted while a partition is closed, its script is gone, or somebody has
# cancelled it. Usage: successor.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 2
write_run
more=(--set train.steps=400 --set train.global_batch=32)

# chain NAME ARGUMENT...: of jobs of one node; prints the number of the first. Its run lies in NAME.
chain() {
  local name=$1
  shift
  env -u FOURFOLD_MPI "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --time 5 --chain 4 --name "$name" --set log.dir="$name" "${more[@]}" "$@" --go 2>"$errors" ||
    echo "submit ended with $?: $(cat "$errors")"
}
pending_of() { squeue --noheader --name="$1" --states=PENDING --format=%A; }
has_next() { [[ -n $(pending_of "$1") ]]; }
# finishes NAME
finishes() {
  until_holds 90 test -e "$1/FINISHED" || complain "the chain of $1 does not go on: $(squeue; tail -n 25 "$1"/*.log)"
  until_holds 30 no_jobs_of "$1" || complain "jobs are left: $(squeue)"
  expect grep -qx 'step 400' "$1/FINISHED"
}
# told NAME: what status says is next.
told() {
  expect_exit 0 "$fourfold" status "$1"
  expect_stdout "$2"
}

# Until free, no job begins.
occupy() {
  sbatch --nodes=2 --exclusive --output=busy.log --job-name=busy --wrap='sleep 60' >/dev/null
  until_holds 30 is_running "$(squeue --noheader --name=busy --format=%A)"
}
free() { expect scancel --name=busy; }

# A partition that takes no more jobs when the first one starts, and some again later.
export FOURFOLD_ASK_AGAIN_S=5
occupy
job=$(chain closed --set train.steps=4000)
expect scontrol update PartitionName=test State=DRAIN
free
until_holds 60 has_steps closed 5 || complain "the first job does not train: $(squeue; tail closed/*.log)"
log=closed/closed-$job.log
expect grep -q 'no successor could be submitted (sbatch ended with code 1.*trying again now and then' "$log"
expect test -z "$(pending_of closed)"
told closed 'no job of the chain waited when this one began (sbatch ended with code 1'
expect scontrol update PartitionName=test State=UP
until_holds 30 has_next closed || complain "no successor comes: $(tail "$log")"
next=$(pending_of closed)
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
expect grep -q "outcome: again, exit code 75, next job $next" "$log"
until_holds 60 has_begun closed 2 || complain "job $next does not go on"
expect test "$(squeue --noheader --name=closed --states=all | wc -l)" -le 3
expect scancel --name=closed
until_holds 60 no_jobs_of closed || complain "jobs are left: $(squeue)"

# One that is closed for all of the job's time: it is tried once more at the end, and status says how to go on.
expect scontrol update PartitionName=test State=UP
occupy
job=$(FOURFOLD_ASK_AGAIN_S=600 chain shut --set train.steps=4000)
expect scontrol update PartitionName=test State=DRAIN
free
until_holds 60 has_steps shut 5 || complain "the first job does not train: $(squeue)"
expect scancel --signal=USR2 "$job"
expect_job "$job" 90 FAILED 75
expect grep -q 'outcome: again, exit code 75, but no job goes on with it (sbatch ended with code 1' "shut/shut-$job.log"
told shut 'no job of the chain goes on with it (sbatch ended with code 1'
expect_stdout ': submit it again, it goes on from the checkpoint'
expect scontrol update PartitionName=test State=UP
unset FOURFOLD_ASK_AGAIN_S

# The script that was submitted is gone: Slurm still has it, for this job and for the one after.
occupy
job=$(chain gone)
rm gone/chain.sbatch
free
until_holds 60 has_steps gone 5 || complain "the first job does not train: $(squeue)"
next=$(pending_of gone)
expect test -n "$next"
expect scancel --signal=USR2 "$job"
until_holds 60 has_begun gone 2 || complain "job $next does not go on: $(tail gone/*.log)"
until_holds 60 grep -q 'resumed from' "gone/gone-$next.log"
expect test -n "$(pending_of gone)"
expect scancel --signal=USR2 "$next"
finishes gone

# Somebody cancels the next job: the chain ends with this one, and says so.
job=$(chain cut)
until_holds 60 has_steps cut 5 || complain "the first job does not train: $(squeue)"
next=$(pending_of cut)
expect scancel "$next"
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
expect test -z "$(squeue --noheader --name=cut)"
expect grep -q "no job goes on with it (job $next, which was to go on, was cancelled): submit the run anew" "cut/cut-$job.log"
told cut "no job of the chain goes on with it (job $next, which was to go on, was cancelled)"
# Submitted again it goes on.
chain cut >/dev/null
finishes cut

# Of a job that waits, status says which it is.
job=$(chain waits)
until_holds 60 has_steps waits 5 || complain "the first job does not train: $(squeue)"
next=$(pending_of waits)
expect scontrol hold "$next"
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
told waits "job $next of the chain goes on from the checkpoint, if it still waits"
expect scontrol release "$next"
finishes waits
expectations_met
