#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Jobs that are stopped and go on, on a real Slurm: by a signal, scancel, preemption, a requeue, in a chain; and a
# controller that dies meanwhile. Whatever happened, the losses are those of a run that nothing happened to, bit for bit.
# Usage: stop_and_go.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 4
write_run
steps=1000
options=(--set train.steps="$steps" --set train.global_batch=64 --set checkpoint.every_steps=200)
expect_exit 0 ranks 2 train run.toml "${options[@]}" --set log.dir=calm
losses calm/metrics.jsonl >calm.txt

# has_left FILE PATTERN
has_left() { grep -q -- "$2" "$1" 2>/dev/null; }
# submit DIR ARGUMENT...: a job of two nodes whose run lies in DIR; prints its number. What sbatch gets beside: "${with[@]}".
with=()
submit() {
  local dir=$1
  shift
  sbatch --parsable --nodes=2 --time=10 "${with[@]}" "${script:-$slurm/train.sbatch}" run.toml "${options[@]}" --set log.dir="$dir" "$@"
}
# expect_calm DIR: the run is finished, and every step of it has the loss of the run that nothing happened to.
expect_calm() {
  expect grep -qx "step $steps" "$1/FINISHED"
  losses "$1/metrics.jsonl" >"$1.txt"
  expect cmp calm.txt "$1.txt"
}
# expect_saved DIR: it was stopped after a step that is saved.
expect_saved() {
  local step
  step=$(sed -n 's/^  "step": \([0-9]*\),$/\1/p' "$1/exit.json")
  [[ $step -gt 0 ]] || complain "$1 stopped after step '$step'"
  expect test -s "$1/checkpoints/$(printf 'step-%09d' "$step")/MANIFEST.json"
}

# A signal to the steps, as from a user or --signal.
job=$(submit signal)
until_holds 60 has_steps signal 20
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
expect_saved signal
expect grep -q '"reason": "saved and stopped: signal"' signal/exit.json
expect grep -q 'outcome: again, exit code 75' "fourfold-$job.log"

# One that reaches the batch script too.
job=$(submit all)
until_holds 60 has_steps all 20
expect scancel --full --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
expect_saved all
expect grep -q 'outcome: again, exit code 75' "fourfold-$job.log"
job=$(submit all)
until_holds 60 has_left "fourfold-$job.log" 'resumed from all/checkpoints'
expect scancel --batch --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75

# A chain with a mistyped key after that: one job, which ends it with 78. Of the run a line says so, and nothing else changes.
sums() { find all -type f ! -name attempts.jsonl -exec sha256sum {} + | sort; }
sums >before.txt
script=$slurm/chain.sbatch with=(--job-name=typo)
job=$(submit all --set train.stepz=3)
script='' with=()
expect_job "$job" 60 FAILED 78
until_holds 30 no_jobs_of typo || complain "jobs are left: $(squeue)"
sums >after.txt
expect cmp before.txt after.txt
expect test "$(grep -c '"event":"refused"' all/attempts.jsonl)" -eq 1
expect_exit 0 "$fourfold" status all
expect_stdout 'last start refused'

# scancel: the run saves within KillWait, and the job goes on when it is submitted again.
job=$(submit signal)
until_holds 60 has_left "fourfold-$job.log" 'resumed from signal/checkpoints'
expect scancel "$job"
expect_job "$job" 60 CANCELLED 75
expect_saved signal
job=$(submit signal)
expect_job "$job" 90 COMPLETED 0
expect_calm signal

# What somebody cancels does not come back by itself.
job=$(FOURFOLD_REQUEUE=1 submit cancelled)
until_holds 60 has_steps cancelled 20
expect scancel "$job"
expect_job "$job" 60 CANCELLED 75
expect grep -q 'the job was cancelled: it is not put back' "fourfold-$job.log"
expect_saved cancelled

# Put back into the queue by itself, on other nodes.
with=(--exclude=node3)
job=$(FOURFOLD_REQUEUE=1 submit requeued)
until_holds 60 has_steps requeued 20
expect scancel --signal=USR2 "$job"
expect_job "$job" 90 COMPLETED 0
expect grep -q 'restart 1' "fourfold-$job.log"
expect_calm requeued

# Preempted: Slurm sends SIGTERM, waits for the GraceTime of the partition, and starts the job again when there is room.
with=()
job=$(submit preempted)
until_holds 60 has_steps preempted 20
urgent=$(sbatch --parsable --partition=urgent --nodes=4 --exclusive --output=urgent.log --wrap='sleep 2')
expect_job "$urgent" 60 COMPLETED 0
expect_job "$job" 90 COMPLETED 0
expect grep -q 'restart 1' "fourfold-$job.log"
expect_calm preempted

# A chain: the successor waits in the queue, goes on, and is taken out again when there is nothing left to do.
with=(--job-name=linked)
script=$slurm/chain.sbatch
job=$(submit chained)
until_holds 60 has_steps chained 20
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
until_holds 90 test -e chained/FINISHED || complain "the chain did not go on: $(squeue)"
expect_calm chained
until_holds 30 no_jobs_of linked || complain "jobs of the chain are left: $(squeue)"
[[ $(grep -c '"event":"begin"' chained/attempts.jsonl) -eq 2 ]] || complain "not two starts: $(cat chained/attempts.jsonl)"
# What no other start mends ends a chain.
job=$(submit broken --set mesh.tp=3)
expect_job "$job" 60 FAILED 78
until_holds 30 no_jobs_of linked || complain "jobs of the chain are left: $(squeue)"

# The controller is killed and started again; the job does not notice.
with=() script=
job=$(submit alone --set train.steps=100000)
until_holds 60 has_steps alone 20
sleep 11 # the state of a job that has just begun may not be saved yet
expect cluster kill-ctld
sleep 1
expect cluster start-ctld
before=$(steps_made alone/metrics.jsonl)
until_holds 30 has_steps alone $((before + 50)) || complain "the run stands still"
expect is_running "$job"
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
expect_saved alone
expect test "$(grep -c '"event":"begin"' alone/attempts.jsonl)" -eq 1
expectations_met
