#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Jobs that put themselves back into the queue, or are not to: without a known time limit, submitted from a job that was
# restarted itself, tasks of an array; and what the next job of chain.sbatch asks for. Usage: back_into_the_queue.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
export TEST_CLUSTER_GPUS=4
begin_cluster "$1" 2
write_run
export FOURFOLD_STUCK_AFTER=0
restarts_of() { scontrol --oneliner show job "$1" | sed -n 's/.*\<Restarts=\([0-9]*\).*/\1/p' | head -n 1; }
has_restarts() { [[ $(restarts_of "$1") -eq $2 ]]; }

# Cancelled is cancelled, also where nobody tells how long the job might have gone on.
mkdir mute && printf '#!/bin/sh\nexit 1\n' >mute/squeue && chmod +x mute/squeue
job=$(PATH=$PWD/mute:$PATH FOURFOLD_REQUEUE=1 sbatch --parsable --nodes=1 "$slurm/train.sbatch" run.toml \
  --set train.steps=1000000 --set log.dir=endless)
until_holds 60 has_steps endless 5 || complain "it does not train"
expect scancel "$job"
until_holds 60 is_over "$job" || complain "job $job is $(state_of "$job")"
sleep 2
expect test "$(state_of "$job")" = CANCELLED
expect test "$(restarts_of "$job")" -eq 0
expect grep -q 'the job was cancelled' "fourfold-$job.log"

# The job that submits had been restarted three times: this one has not.
job=$(SLURM_RESTART_COUNT=3 FOURFOLD_REQUEUE=1 sbatch --parsable --nodes=1 --time=5 "$slurm/train.sbatch" run.toml \
  --set train.steps=1000000 --set log.dir=nested)
until_holds 60 has_steps nested 5 || complain "it does not train"
expect scancel --signal=USR2 "$job"
until_holds 60 has_restarts "$job" 1 || complain "job $job is $(state_of "$job"): $(cat "fourfold-$job.log")"
expect scancel "$job"
until_holds 60 is_over "$job" || complain "job $job is $(state_of "$job")"

# The last task of an array has the array's number: it alone goes back, and both finish.
printf -- '--set log.dir=a%d --set train.steps=3000\n' 1 2 >sweep.txt
array=$(FOURFOLD_REQUEUE=1 sbatch --parsable --array=1-2 --nodes=1 --time=5 "$slurm/array.sbatch" sweep.txt run.toml)
until_holds 60 has_steps a2 5 || complain "task 2 does not train"
expect sed -i '1i --set log.dir=another' sweep.txt # a line for the next array: this one goes on with what it began with
expect scancel --full --signal=USR2 "${array}_2"
until_holds 120 has_begun a2 2 || complain "task 2 has not gone on: $(cat fourfold-array-*_2.log)"
both_are_done() { [[ -s a1/FINISHED && -s a2/FINISHED ]]; }
until_holds 240 both_are_done || complain "they do not finish: $(squeue)"
expect has_begun a1 1
expect test ! -e another
expect grep -q 'resumed from a2/checkpoints' fourfold-array-*_2.log

# Another job takes the node of one task: that one goes back, the other knows nothing of it.
printf -- '--set log.dir=b%d --set train.steps=1000000\n' 1 2 >sweep.txt
array=$(sbatch --parsable --array=1-2 --nodes=1 --exclusive --time=5 "$slurm/array.sbatch" sweep.txt run.toml)
both_train() { has_steps b1 5 && has_steps b2 5; }
until_holds 60 both_train || complain "they do not train: $(squeue)"
node=$(squeue --noheader --array --jobs="${array}_1" --format=%N)
urgent=$(sbatch --parsable --partition=urgent --nodes=1 --exclusive --nodelist="$node" --output=urgent.log --wrap='sleep 2')
expect_job "$urgent" 60 COMPLETED 0
until_holds 60 has_begun b1 2 || complain "the task that was preempted has not gone on: $(cat fourfold-array-"$array"_1.log)"
expect grep -q '"reason":"saved and stopped: preempted"' b1/attempts.jsonl
touch b1/STOP b2/STOP
until_holds 60 no_jobs_of fourfold-array || complain "jobs are left: $(squeue)"
expect has_begun b1 2
expect has_begun b2 1
expect grep -q 'outcome: stop, exit code 75' "fourfold-array-${array}_2.log"

# The next job of a chain asks for what the first did.
expect scontrol update nodename=node1 availablefeatures=fast activefeatures=fast
expect scontrol create reservation reservationname=ours users=root nodes=node1 starttime=now duration=60
job=$(sbatch --parsable --nodes=1 --time=5 --exclude=node0 --nice=50 --mem=200 --constraint=fast --reservation=ours \
  --gres=gpu:2 --exclusive --mincpus=2 --job-name=alike "$slurm/chain.sbatch" run.toml \
  --set train.steps=1000000 --set log.dir=alike)
until_holds 60 has_steps alike 5 || complain "it does not train"
next=$(squeue --noheader --name=alike --states=PENDING --format=%A)
for field in ExcNodeList=node0 Nice=50 MinMemoryNode=200M Features=fast Reservation=ours TimeLimit=00:05:00 TresPerNode=gres:gpu:2 \
  OverSubscribe=NO MinCPUsNode=2; do
  expect grep -q " $field " <(scontrol --oneliner show job "$next")
done
expect scancel --name=alike
until_holds 60 no_jobs_of alike || complain "jobs are left: $(squeue)"
expectations_met
