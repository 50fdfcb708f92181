#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The slurmd of all nodes of a job die while its ranks and its batch script live on, on a real Slurm: the job is started elsewhere, or
# the next job of its chain is, and for a while there are two. One of them writes, and the old one's script decides nothing.
# Usage: fencing.bash BUILD_DIR requeue|chain [TIMES]
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 4
# As long as by default: the old step's srun, and so its script, outlives the moment in which the new start takes over.
sed -i 's/^KillWait=.*/KillWait=30/' "$SLURM_CONF"
expect scontrol reconfigure
write_run
options=(--set train.steps=1000000 --set train.global_batch=64 --set checkpoint.every_steps=100)
case $2 in
  requeue) script=train.sbatch ;;
  chain) script=chain.sbatch ;;
esac

# What has ended may stay a zombie while its slurmstepd looks for a slurmd.
lives() { [[ $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) == [^ZX]* ]]; }
are_gone() { for process in $old; do ! lives "$process" || return 1; done; }
is_started_again() { is_running "$later" && { [[ $later != "$job" ]] || scontrol show job "$job" | grep -q 'Restarts=1 '; }; }
goes_on() { python3 -c 'import json, sys
records = [json.loads(line) for line in open(sys.argv[1])]
at = [i for i, one in enumerate(records) if one["event"] == "resume"]
sys.exit(not at or len(records) < at[0] + 300)' "$1/metrics.jsonl"; }

# survives DIR: one job and its survivors.
survives() {
  local dir=$1 node nodes
  job=$(sbatch --parsable --nodes=2 --ntasks=2 --time=10 --job-name=fenced "$slurm/$script" run.toml "${options[@]}" --set log.dir="$dir")
  until_holds 60 has_steps "$dir" 150 || complain "$dir does not come to step 150"
  old=$(ranks_of "$job")
  [[ $(wc -w <<<"$old") -eq 2 ]] || complain "not two ranks of the first start: $old"
  mapfile -t nodes < <(scontrol show hostnames "$(squeue --noheader --jobs="$job" --format=%N)")
  for node in "${nodes[@]}"; do expect cluster kill-slurmd "${node#node}"; done
  later=$job
  [[ $script == train.sbatch ]] || later=$(squeue --noheader --name=fenced --states=PENDING --format=%A)
  until_holds 90 is_started_again || complain "the run was not started again"
  for process in $old; do
    lives "$process" || complain "rank $process of the first start was gone before: there is nothing to fence"
  done
  until_holds 30 are_gone || complain "the first start lives on"
  until_holds 90 goes_on "$dir" || complain "the second start does not go on: $(cat "$dir/attempts.jsonl")"
  touch "$dir/STOP"
  expect_job "$later" 60 FAILED 75
  until_holds 30 no_jobs_of fenced || complain "jobs are left: $(squeue)"
  [[ $script == chain.sbatch ]] || expect grep -q 'restart 1' "fenced-$job.log"
  expect grep -q 'took the lease of this directory from an earlier start of this run' "fenced-$later.log"
  expect grep -q '"code": 75' "$dir/exit.json"
  # After the line with which the second start begins, every step is there once, in order: nobody else wrote. What the first
  # had made and not saved is made again with the same losses, bit for bit.
  expect python3 -c 'import json, sys
records = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
at = [i for i, one in enumerate(records) if one["event"] == "resume"]
assert len(at) == 1, at
begin = records[at[0]]["from_step"]
assert begin >= 100 and begin % 100 == 0, begin
before, after = ({one["step"]: one["loss"] for one in part if one["event"] == "step"} for part in (records[:at[0]], records[at[0]:]))
steps = [one["step"] for one in records[at[0]:] if one["event"] == "step"]
assert steps == list(range(begin + 1, begin + 1 + len(steps))), (begin, steps[:3], len(steps))
assert len(steps) > 200, len(steps)
again = before.keys() & after.keys()
assert all(before[step] == after[step] for step in again), again
saved = [one["step"] for one in records[at[0]:] if one["event"] == "checkpoint"]
assert saved == sorted(set(saved)), saved
ends = [json.loads(line) for line in open(sys.argv[1] + "/attempts.jsonl")]
ends = [(one["job"], one["restart"], one["code"]) for one in ends if one["event"] == "end"]
assert len(ends) == 2 and ends[0][2] in (85, 93) and ends[1][2] == 75, ends' "$dir"
  expect_exit 0 "$fourfold" ckpt verify --deep "$dir/checkpoints"
  for node in "${nodes[@]}"; do expect cluster start-node "${node#node}"; done
  until_holds 60 all_are_idle 4 || complain "not all nodes come back: $(sinfo)"
}

for time in $(seq "${3:-1}"); do
  survives "fenced$time"
  [[ ${3:-1} -eq 1 ]] || echo "$time of $3, $broken expectations do not hold"
done
expectations_met
