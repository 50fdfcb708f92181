#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# A run as one batch job on a real Slurm of four nodes: all four axes' worth of ranks, the end it comes to, what it leaves;
# and the ways of starting that are refused. Usage: train_job.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 4
write_run

# Eight ranks on four nodes, cut in three ways; what was trained is what one process trains.
job=$(sbatch --parsable --nodes=4 --ntasks=8 --time=5 "$slurm/train.sbatch" run.toml \
  --set mesh.dp=2 --set mesh.tp=2 --set mesh.pp=2 --set train.micro_batch=2 --set log.trace=false)
expect_job "$job" 120 COMPLETED 0
expect grep -qx 'step 8' run/FINISHED
expect grep -q '"code": 0' run/exit.json
expect grep -q 'outcome: finished, exit code 0' "fourfold-$job.log"
expect python3 -c 'import json, collections
start = [json.loads(line) for line in open("run/metrics.jsonl")][0]
assert start["mesh"] == "pp2 dp2 cp1 tp2", start["mesh"]
assert collections.Counter(start["rank_hosts"]) == {f"node{node}": 2 for node in range(4)}, start["rank_hosts"]'
expect python3 -c 'import json
begin, end = [json.loads(line) for line in open("run/attempts.jsonl")]
assert begin["nodes"] == 4 and begin["job"] == end["job"] == "'"$job"'"
assert begin["from_step"] is None and end["code"] == 0 and end["step"] == 8 and end["retry"] is False'
expect_exit 0 "$fourfold" status run --json
expect python3 -c 'import json, sys
run = json.load(open(sys.argv[1]))["runs"][0]
attempt = run["attempts"][0]
assert run["state"] == "finished" and run["checkpoint_step"] == 8 and run["node_hours_lost"] == 0, run
assert (attempt["job"], attempt["nodes"], attempt["to_step"]) == (sys.argv[2], 4, 8), run
assert 0 <= attempt["began"] + 300 - run["deadline"] < 60, run
assert abs(run["node_hours_used"] - 4 * (attempt["until"] - (run["deadline"] - 300)) / 3600) < 1e-9, run' "$output" "$job"
expect_exit 0 "$fourfold" train run.toml --set train.micro_batch=2 --set log.dir=one
losses run/metrics.jsonl >several.txt
losses one/metrics.jsonl >one.txt
expect python3 -c 'several, one = ([float(line.split()[1]) for line in open(name)] for name in ("several.txt", "one.txt"))
assert len(several) == len(one) == 8
assert all(abs(a - b) < 1e-5 * b for a, b in zip(several, one)), (several, one)'

# Submitted again there is nothing to do; wanted longer, it goes on.
job=$(sbatch --parsable --nodes=2 --time=5 "$slurm/train.sbatch" run.toml)
expect_job "$job" 60 COMPLETED 0
expect grep -q 'the run is finished: nothing to do' "fourfold-$job.log"
job=$(sbatch --parsable --nodes=2 --time=5 "$slurm/train.sbatch" run.toml --set train.steps=10)
expect_job "$job" 60 COMPLETED 0
expect grep -qx 'step 10' run/FINISHED
expect grep -q 'resumed from run/checkpoints/step-000000008' "fourfold-$job.log"

# Two jobs of one run at once: one trains, the other is refused, and does not take what the first left for its own end.
twins=(--parsable --nodes=2 --time=5 "$slurm/train.sbatch" run.toml --set log.dir=twins --set train.steps=1000000)
one=$(sbatch "${twins[@]}")
other=$(sbatch "${twins[@]}")
one_is_over() { is_over "$one" || is_over "$other"; }
until_holds 60 one_is_over || complain "nobody is refused: $(squeue)"
touch twins/STOP
both_are_over() { is_over "$one" && is_over "$other"; }
until_holds 60 both_are_over || complain "jobs are not over: $(squeue)"
expect test "$(printf '%s\n' "$(exit_of "$one")" "$(exit_of "$other")" | sort | xargs)" = '75 78'
expect grep -q '"code": 75' twins/exit.json
expect test "$(grep -c '"event":"start"' twins/metrics.jsonl)" -eq 1

# Without a process manager that MPI understands every task would train by itself: refused at once, with the word to say.
job=$(FOURFOLD_MPI=none sbatch --parsable --nodes=2 --time=5 "$slurm/train.sbatch" run.toml --set log.dir=alone)
expect_job "$job" 60 FAILED 78
expect grep -q 'srun --mpi=pmi2' "fourfold-$job.log"
expect test ! -e alone/metrics.jsonl

# What is wrong with the run file ends the job before it takes its nodes; so does a program that the nodes have not got.
# A launcher that starts nothing, and would not the next time either, ends a chain at once; nor is a job put back into the queue.
never_starts() {
  local job
  rm -rf never
  job=$(sbatch --parsable --nodes=2 --time=5 --job-name=never "$slurm/$1" run.toml --set log.dir=never)
  expect_job "$job" 60 FAILED 78
  until_holds 30 no_jobs_of never || complain "jobs are left: $(squeue)"
  expect test "$(grep -c '"event":"begin"' never/attempts.jsonl)" -eq 1
  expect grep -q "the launcher starts nothing here (.*$2" never/attempts.jsonl
}
for script in train.sbatch chain.sbatch; do
  FOURFOLD_MPI=pmi9 never_starts "$script" "Invalid MPI type 'pmi9'"
done
# Slurm offers this one, and cannot load it without its library.
if srun --mpi=list 2>&1 | grep -qw pmix && ! srun --mpi=pmix true >/dev/null 2>&1; then
  FOURFOLD_MPI=pmix never_starts chain.sbatch "Invalid MPI type 'pmix'"
fi
SLURM_GRES_FLAGS='' SLURM_DISTRIBUTION=sideways never_starts chain.sbatch 'Invalid --distribution specification'

job=$(sbatch --parsable --nodes=4 --time=5 "$slurm/train.sbatch" run.toml --set train.stepz=3)
expect_job "$job" 60 FAILED 78
expect grep -q 'did you mean "steps"' "fourfold-$job.log"
job=$(sbatch --parsable --nodes=4 --time=5 "$slurm/train.sbatch" run.toml --set log.dir=m --set mesh.tp=3)
expect_job "$job" 60 FAILED 78
expect grep -q 'mesh.tp' "fourfold-$job.log"
expect test ! -e m
sum=$(sha256sum one/exit.json)
job=$(sbatch --parsable --nodes=4 --time=5 "$slurm/train.sbatch" run.toml --set log.dir=one --set train.steps=16 --set mesh.tp=3)
expect_job "$job" 60 FAILED 78
expect grep -q '"event":"refused".*"code":78' one/attempts.jsonl
expect test "$(sha256sum one/exit.json)" = "$sum"

# A sweep: each task of an array takes its own line of options; a line that is not there is refused.
printf '%s\n' '--set optim.lr=1e-3 --set log.dir="swept 1"' '--set optim.lr=3e-3  --set log.dir=swept2' >sweep.txt
job=$(sbatch --parsable --array=1-3%2 --nodes=1 --time=5 "$slurm/array.sbatch" sweep.txt run.toml)
until_holds 90 is_over "${job}_3"
expect_job "${job}_1" 90 COMPLETED 0
expect_job "${job}_2" 90 COMPLETED 0
expect_job "${job}_3" 90 FAILED 78
expect grep -qx 'step 8' 'swept 1/FINISHED'
expect grep -q 'lr = 0.003' swept2/config.toml

# A checkpoint is cut for another mesh by four tasks.
job=$(sbatch --parsable --nodes=2 --ntasks=4 --time=5 "$slurm/reshard.sbatch" run/checkpoints recut --to tp=2,dp=2)
expect_job "$job" 60 COMPLETED 0
expect_exit 0 "$fourfold" ckpt diff run/checkpoints recut
expectations_met
