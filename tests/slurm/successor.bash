#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The next job of a chain, on a real Slurm: it cannot be submitted while a partition is closed, its script is gone, somebody has
# cancelled it, or a controller that was killed has forgotten it. Usage: successor.bash BUILD_DIR
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

# One that could be submitted later, and that somebody has cancelled: no other one takes its place.
expect scontrol update PartitionName=test State=UP
occupy
job=$(chain later --set train.steps=4000)
expect scontrol update PartitionName=test State=DRAIN
free
until_holds 60 has_steps later 5 || complain "the first job does not train: $(squeue)"
expect scontrol update PartitionName=test State=UP
until_holds 30 has_next later || complain "no successor comes: $(squeue)"
next=$(pending_of later)
expect scancel "$next"
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
expect test -z "$(squeue --noheader --name=later)"
told later "no job of the chain goes on with it (job $next, which was to go on, was cancelled)"

# Whoever cancels all jobs of a chain has ended it: also in the first moments of one, before it has queued the next, and where it has none.
for delay in 0 0.1 0.2 0.3 0.4 0.6; do
  job=$(chain ends --set train.steps=4000)
  until_holds 30 is_running "$job" || complain "job $job does not begin: $(squeue)"
  sleep "$delay"
  expect scancel --name=ends
  until_holds 60 no_jobs_of ends || complain "jobs are left: $(squeue)"
  sleep 2
  no_jobs_of ends || complain "the chain lives on, cancelled after $delay s: $(squeue; tail -n 5 ends/ends-*.log)"
done
occupy
job=$(FOURFOLD_ASK_AGAIN_S=600 chain alone --set train.steps=4000)
expect scontrol update PartitionName=test State=DRAIN
free
until_holds 60 has_steps alone 5 || complain "the first job does not train: $(squeue)"
expect scontrol update PartitionName=test State=UP
expect scancel --name=alone
until_holds 60 is_over "$job" || complain "job $job goes on: $(squeue)"
sleep 2
no_jobs_of alone || complain "the chain lives on: $(squeue)"
told alone 'no job of the chain goes on with it (this job was cancelled before another one was queued)'

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

# A chain of chain.sbatch itself, in whose first moments no controller answers: how it was submitted is asked anew when one does.
mkdir away
for command in scontrol sbatch; do
  cat >"away/$command" <<END
#!/bin/bash
if [[ -e $PWD/away/now ]]; then echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2 && exit 1; fi
exec $(command -v "$command") "\$@"
END
  chmod +x "away/$command"
done
# direct NAME
direct() {
  PATH=$PWD/away:$PATH FOURFOLD_ASK_S=5 FOURFOLD_ASK_AGAIN_S=5 sbatch --parsable --nodes=1 --ntasks=1 --time=5 --job-name="$1" "$slurm/chain.sbatch" run.toml \
    "${more[@]}" --set train.steps=1000000 --set log.dir="$1"
}
occupy
job=$(direct direct)
touch away/now
free
until_holds 90 has_steps direct 5 || complain "the first job does not train: $(squeue; cat direct-*.log)"
expect grep -q 'no successor could be submitted (how this job was submitted is not known' "direct-$job.log"
rm away/now
until_holds 30 has_next direct || complain "no successor comes: $(cat "direct-$job.log")"
next=$(pending_of direct)
# In the first moments of the next one: which run it goes on with nobody says, and its log.dir does, whatever else its user has made of the run file.
expect scontrol hold "$next"
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
cp run.toml as_it_was.toml
sed -i 's/^lr = .*/lr = 7e-3/' run.toml
touch away/now
expect scontrol release "$next"
until_holds 90 grep -q 'resumed from' "direct-$next.log" || complain "job $next does not go on: $(cat "direct-$next.log")"
expect grep -q 'Slurm does not say which run file this job goes on with: it is looked for in log.dir' "direct-$next.log"
expect grep -q 'run.toml has changed since it was submitted' "direct-$next.log"
rm away/now
cp as_it_was.toml run.toml
expect scancel --name=direct
until_holds 60 no_jobs_of direct || complain "jobs are left: $(squeue)"
# Where that is another run's by now, nothing is started in it.
sed -i 's/^dir = .*/dir = "first"/' run.toml
job=$(PATH=$PWD/away:$PATH FOURFOLD_ASK_S=5 FOURFOLD_ASK_AGAIN_S=5 sbatch --parsable --nodes=1 --ntasks=1 --time=5 --job-name=moves "$slurm/chain.sbatch" run.toml \
  --set train.steps=1000000)
until_holds 60 has_steps first 5 || complain "the first job does not train: $(squeue; cat moves-*.log)"
next=$(pending_of moves)
expect scontrol hold "$next"
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
sed -i 's/^dir = .*/dir = "second"/' run.toml
touch away/now
expect scontrol release "$next"
expect_job "$next" 120 FAILED 85
expect grep -q "in $PWD/second, the log.dir of run.toml by now, no earlier start of it began" "moves-$next.log"
rm away/now
expect test ! -e second
cp as_it_was.toml run.toml
# What it was to go on with is gone.
job=$(direct lost_run)
until_holds 60 has_steps lost_run 5 || complain "the first job does not train: $(squeue; cat lost_run-*.log)"
next=$(pending_of lost_run)
rm -r lost_run/submitted
expect scancel --signal=USR2 "$job"
expect_job "$next" 60 FAILED 78
expect grep -q 'is gone, where this chain keeps what it trains' "lost_run-$next.log"

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

# An installation that is replaced while a job runs, as scripts grow: this job ends by what it began with, the next one by the new.
cp -rL "$slurm" scripts
cat >own.sh <<END
#!/bin/bash
#SBATCH --nodes=1 --ntasks=1 --time=5 --job-name=replaced --dependency=singleton --output=replaced-%j.log
exec bash "$PWD/scripts/chain.sbatch" run.toml --set log.dir=replaced ${more[*]}
END
job=$(FOURFOLD_SLURM=$PWD/scripts FOURFOLD_SCRIPT=$PWD/own.sh sbatch --parsable own.sh)
until_holds 60 has_steps replaced 5 || complain "the first job does not train: $(squeue; tail replaced-*.log)"
for file in scripts/*; do
  [[ -f $file ]] || continue
  { head -n 1 "$file" && for i in $(seq 40); do echo "# a remark ((( that says $i times nothing"; done && tail -n +2 "$file"; } >longer
  cat longer >"$file" # the same file, not another of its name
done
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
expect grep -q 'outcome: again, exit code 75, next job' "replaced-$job.log"
finishes replaced

# Last, since the nodes may take what comes under a number twice for the first: a controller that is killed has forgotten what was submitted in its last seconds, and gives its number to a stranger.
export FOURFOLD_ASK_AGAIN_S=5
for try in 1 2 3 4 5; do
  occupy
  job=$(chain "lost$try" --set train.steps=40000)
  expect scontrol update PartitionName=test State=DRAIN
  free
  until_holds 60 has_steps "lost$try" 5 || complain "the first job does not train: $(squeue)"
  sleep 6 # what the controller knows of it is saved
  expect scontrol update PartitionName=test State=UP
  until_holds 60 has_next "lost$try" || complain "there is no next job: $(squeue)"
  next=$(pending_of "lost$try")
  expect cluster kill-ctld
  expect cluster start-ctld
  scontrol show job "$next" >/dev/null 2>&1 || break
  expect scancel --name="lost$try"
  until_holds 60 no_jobs_of "lost$try" || complain "jobs are left: $(squeue)"
done
unset FOURFOLD_ASK_AGAIN_S
if [[ $(squeue --noheader --states=all --format=%A) == *"$next"* ]]; then
  echo "the controller has never forgotten a job: that is not tried"
  expect scancel --name="lost$try"
else
  stranger=$(sbatch --parsable --hold --job-name=stranger --output=stranger.log --wrap=true)
  expect test "$stranger" -eq "$next"
  expect scancel --signal=USR2 "$job"
  expect_job "$job" 60 FAILED 75
  expect grep -q "Slurm does not know job $next any more, which was to go on: submitting another" "lost$try/lost$try-$job.log"
  until_holds 60 has_begun "lost$try" 2 || complain "the chain does not go on: $(squeue)"
  expect test "$(state_of "$stranger")" == PENDING
  expect scancel --name="lost$try"
  expect scancel --name=stranger
  until_holds 60 no_jobs_of "lost$try" || complain "jobs are left: $(squeue)"
fi
expectations_met
