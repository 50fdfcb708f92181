#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Signals from the first second of a job to its last, on a real Slurm: while the site's file is read, while a start waits for a lease,
# while it trains; and a batch script that is killed. Usage: early_signals.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 2
write_run
mkdir temporary
export TMPDIR=$PWD/temporary FOURFOLD_REQUEUE=0
# trains DIR: a job of two nodes.
trains() { sbatch --parsable --nodes=2 --ntasks=2 --time=5 "$slurm/train.sbatch" run.toml --set train.steps=1000000 --set log.dir="$1"; }
says() { grep -qs -- "$1" "fourfold-$job.log"; }

# shellcheck disable=SC2016  # expanded in the job
printf 'echo "the site begins"\nfor i in $(seq 30); do sleep 0.1; done\nexport SITE_WAS_READ=1\n' >slow_site.sh
for told in USR2 USR1 TERM; do
  job=$(FOURFOLD_SITE=./slow_site.sh trains "site$told")
  until_holds 30 says 'the site begins' || complain "the job does not begin: $(squeue)"
  expect scancel --full --signal="$told" "$job"
  expect_job "$job" 60 FAILED 75
  expect says "SIG$told: the run is not launched"
  expect grep -q '"event":"end".*"code":75' "site$told/attempts.jsonl"
  expect test ! -e "site$told/metrics.jsonl"
done

# While it watches a lease that somebody has left behind.
for told in USR2 USR1; do
  mkdir "lease$told"
  echo 'fourfold-lease 1 aaaaaaaaaaaaaaaa nowhere - 77 - 0 12 -' >"lease$told/.run-lease"
  job=$(trains "lease$told")
  until_holds 30 says 'watching for 30 s' || complain "the start does not wait: $(cat "fourfold-$job.log")"
  expect scancel --full --signal="$told" "$job"
  expect_job "$job" 90 FAILED 75
  expect says "SIG$told: the run is not launched"
  expect test ! -e "lease$told/metrics.jsonl"
done

# While srun makes the step: one that comes too early for its tasks is sent again.
# shellcheck disable=SC2016  # expanded in the job
printf 'srun() { [[ "$*" != *" train "* ]] || sleep 10; command srun "$@"; }\n' >slow_srun.sh
job=$(FOURFOLD_SITE=./slow_srun.sh trains before_step)
until_holds 30 says 'starting on' || complain "the job does not begin: $(squeue)"
sleep 0.5
expect scancel --batch --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
for delay in 0 0.1 0.2 0.4; do
  job=$(trains "step$delay")
  until_holds 30 says 'starting on' || complain "the job does not begin: $(squeue)"
  sleep "$delay"
  expect scancel --batch --signal=USR2 "$job"
  expect_job "$job" 60 FAILED 75
  expect grep -q '"event":"end".*"code":75' "step$delay/attempts.jsonl"
done

# While it trains: to the steps, to the script alone, to both.
for how in '' --batch --full; do
  for told in USR2 USR1 TERM; do
    [[ $how$told != --fullTERM ]] || continue # as the docs say, see below
    job=$(trains "trains$how$told")
    until_holds 60 has_steps "trains$how$told" 5 || complain "the run does not train: $(cat "fourfold-$job.log")"
    expect scancel ${how:+"$how"} --signal="$told" "$job"
    expect_job "$job" 60 FAILED 75
    [[ $how != --batch ]] || expect says "SIG$told: $([[ $told == TERM ]] && echo 'waiting for fourfold to save' || echo 'passed on')"
    expect grep -q '"code": 75' "trains$how$told/exit.json"
  done
done

# The same where the run may restart inside the job, whose script waits in another way.
for told in USR2 USR1; do
  job=$(FOURFOLD_RESTARTS_INSIDE=1 trains "inside$told")
  until_holds 60 has_steps "inside$told" 5 || complain "the run does not train: $(cat "fourfold-$job.log")"
  expect scancel --batch --signal="$told" "$job"
  expect_job "$job" 60 FAILED 75
  expect says "SIG$told: passed on"
done

# Nobody but a person sends one to the steps, also in the job's last minutes.
job=$(FOURFOLD_REQUEUE=0 sbatch --parsable --nodes=2 --ntasks=2 --time=3 "$slurm/train.sbatch" run.toml --set train.steps=1000000 --set log.dir=last)
until_holds 60 has_steps last 5 || complain "the run does not train: $(cat "fourfold-$job.log")"
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
expect grep -q '"reason": "saved and stopped: signal"' last/exit.json

# Before a program that cannot be run: nothing has begun, and nothing of the run is over.
job=$(FOURFOLD_SLURM=$slurm FOURFOLD=$PWD/none FOURFOLD_SITE=./slow_site.sh trains none)
until_holds 30 says 'the site begins' || complain "the job does not begin: $(squeue)"
expect scancel --full --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75

# After the run has failed, while its end is still being noted: it is not started again.
cat >noter <<END
#!/bin/bash
if [[ "\$1 \$2" == "job end" ]]; then touch "$PWD/noting" && sleep 5; fi
exec "$fourfold" "\$@"
END
chmod +x noter
job=$(unset FOURFOLD_REQUEUE && FOURFOLD_SLURM=$slurm FOURFOLD=$PWD/noter trains late)
until_holds 60 has_steps late 5 || complain "the run does not train: $(cat "fourfold-$job.log")"
expect pkill --newest --signal KILL --full 'fourfold-train.*log.dir=late'
until_holds 60 test -e noting || complain "no end is noted: $(cat "fourfold-$job.log")"
expect scancel --full --signal=USR2 "$job"
until_holds 60 is_over "$job" || complain "job $job is not over: $(squeue)"
expect says 'SIGUSR2: the run has ended already'
expect grep -q '"event":"end".*"code":8[56].*"retry":true' late/attempts.jsonl

# Suspended until its end was near, with less time left than a save is given, and then for longer than was left of its time: it goes on each time,
# and knows its end, which Slurm moves by as long.
job=$(FOURFOLD_LOOK_AT_END_S=5 sbatch --parsable --nodes=2 --ntasks=2 --time=2 "$slurm/train.sbatch" run.toml --set train.steps=1000000 \
  --set log.dir=suspended --set checkpoint.margin_s=40)
until_holds 60 has_steps suspended 5 || complain "the run does not train: $(cat "fourfold-$job.log")"
for seconds in 88 70; do
  expect scontrol suspend "$job"
  sleep "$seconds"
  steps=$(steps_made suspended/metrics.jsonl)
  expect scontrol resume "$job"
  sleep 10
  is_running "$job" || complain "job $job has ended when it was resumed after $seconds s: $(cat "fourfold-$job.log")"
  expect test "$(steps_made suspended/metrics.jsonl)" -gt "$steps"
  sleep 10
  is_running "$job" || complain "job $job has ended at an end that was moved: $(cat "fourfold-$job.log")"
  expect test "$(grep -c "the job's end was moved" "fourfold-$job.log")" -ge 1
done
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75

# What srun would make of TERM the docs say, with the command that is meant.
# shellcheck disable=SC2016
expect grep -q -- 'Not `scancel --full --signal=TERM`: that reaches `srun`, which kills all ranks' "$SOURCE_DIR/docs/slurm.md"

# An end that somebody moves so near that nothing warns of it is a time limit all the same.
for how in TimeLimit=1 EndTime=now; do
  job=$(trains "moved$how")
  until_holds 60 has_steps "moved$how" 5 || complain "the run does not train: $(cat "fourfold-$job.log")"
  expect scontrol update "JobId=$job" "$how"
  until_holds 150 is_over "$job" || complain "job $job is not over"
  expect grep -q '"reason": "saved and stopped: time limit"' "moved$how/exit.json"
  expect grep -q '"event":"end".*"code":75.*saved and stopped: time limit' "moved$how/attempts.jsonl"
done

# And one that wants to go back into the queue then does: nobody has cancelled it.
job=$(FOURFOLD_REQUEUE=1 trains requeued)
until_holds 60 has_steps requeued 5 || complain "the run does not train: $(cat "fourfold-$job.log")"
expect scontrol update "JobId=$job" EndTime=now
until_holds 60 says 'outcome: again, exit code 75' || complain "the job goes on: $(cat "fourfold-$job.log")"
sleep 3
! says 'the job was cancelled' || complain "the job takes itself for cancelled: $(cat "fourfold-$job.log")"
expect test "$(scontrol show job "$job" | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p')" = 1
expect scancel "$job"
until_holds 60 is_over "$job" || complain "job $job is not over"

# One that is moved later is made use of, by all ranks.
job=$(FOURFOLD_LOOK_AT_END_S=5 sbatch --parsable --nodes=2 --ntasks=2 --time=1 "$slurm/train.sbatch" run.toml --set train.steps=1000000 \
  --set log.dir=later)
until_holds 60 has_steps later 5 || complain "the run does not train: $(cat "fourfold-$job.log")"
expect scontrol update "JobId=$job" TimeLimit=20
until_holds 30 says "the job's end was moved: it ends in 1" || complain "the run does not know its end: $(cat "fourfold-$job.log")"
sleep 60
is_running "$job" || complain "job $job has ended at its first end: $(cat "fourfold-$job.log")"
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
expect grep -q '"reason": "saved and stopped: signal"' later/exit.json
expect test ! -e later/.job-end

# A batch script that is killed leaves nothing in the folder for temporary files.
job=$(trains killed)
until_holds 60 has_steps killed 5 || complain "the run does not train: $(cat "fourfold-$job.log")"
script=$(pgrep --oldest --full "$TEST_CLUSTER_DIR/.*job0*$job/slurm_script")
expect kill -KILL "$script"
until_holds 60 is_over "$job" || complain "job $job is not over"
expect test -z "$(ls -A temporary)"
expectations_met
