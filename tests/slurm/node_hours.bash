#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# What a chain has cost, on a real Slurm: what status says is what Slurm says, of jobs whose site takes a while before the run begins, and
# of one that ended before it. Usage: node_hours.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 2
write_run
# What a site's file takes, and a job whose script is killed before it can begin a start.
echo 'sleep 3' >site.sh
cat >once <<END
#!/bin/bash
[[ "\$1 \$2" != "job begin" || ! -e $PWD/kill-next ]] || { rm $PWD/kill-next && kill -KILL \$PPID; sleep 60; }
exec "$fourfold" "\$@"
END
chmod +x once
job=$(FOURFOLD=$PWD/once FOURFOLD_SLURM=$slurm FOURFOLD_SITE=$PWD/site.sh sbatch --parsable --nodes=2 --ntasks=2 --time=5 --job-name=counted \
  "$slurm/chain.sbatch" run.toml --set train.steps=40000 --set train.global_batch=32 --set log.dir=counted)
until_holds 60 has_steps counted 20 || complain "the first job does not train: $(squeue; tail ./*.log)"
sleep 2 # Slurm tells begins and ends in whole seconds, by which status orders jobs
touch kill-next
expect scancel --signal=USR2 "$job"
expect_job "$job" 60 FAILED 75
until_holds 60 is_over $((job + 1)) || complain "the second job is not killed: $(squeue)"
# It has been noted, beside the third itself.
made=$(steps_made counted/metrics.jsonl)
until_holds 90 has_steps counted $((made + 20)) || complain "the third does not train: $(squeue; tail ./*.log)"
expect scancel --signal=USR2 $((job + 2))
expect_job $((job + 2)) 60 FAILED 75
made=$(steps_made counted/metrics.jsonl)
until_holds 60 has_steps counted $((made + 20)) || complain "the fourth does not train: $(squeue; tail ./*.log)"
expect scancel --name=counted
until_holds 60 no_jobs_of counted || complain "jobs are left: $(squeue)"

"$fourfold" status --json counted >status.json
SLURM_TIME_FORMAT=%s squeue --noheader --states=all --name=counted --format='%A %T %S %e %D %N' | sort -n >jobs.txt
cat jobs.txt
expect python3 - status.json jobs.txt "$job" <<'END'
import json, sys
run = json.load(open(sys.argv[1]))["runs"][0]
first = int(sys.argv[3])
jobs = [line.split() for line in open(sys.argv[2])]
jobs = [one for one in jobs if len(one) == 6]  # the others have never had a node
assert [int(one[0]) for one in jobs] == [first, first + 1, first + 2, first + 3], jobs
by_slurm = sum(int(nodes) * (int(end) - int(begin)) for _, _, begin, end, nodes, _ in jobs)
used = 3600 * run["node_hours_used"]
print(f"{used:.1f} node-seconds by status, {by_slurm} by Slurm")
# The end of the last one nobody has asked for; Slurm tells whole seconds.
assert by_slurm > 2 * 4 * 3 and abs(used - by_slurm) < 2 * 2.5, (used, by_slurm)
attempts = run["attempts"]
assert [one["code"] for one in attempts] == [75, 85, 75, 75], attempts
assert attempts[1]["reason"] == "the job was over before its batch script could begin (Slurm says FAILED)", attempts[1]
assert attempts[1]["nodes"] == 2 and attempts[1]["job"] == str(first + 1), attempts[1]
END

# Whose script is killed has no end; another job of the run, which is no part of its chain, learns it from Slurm.
job=$(sbatch --parsable --nodes=2 --ntasks=2 --time=5 "$slurm/train.sbatch" run.toml --set train.steps=1000000 --set log.dir=other)
until_holds 60 has_steps other 20 || complain "the job does not train: $(squeue; tail ./*.log)"
sleep 2 # Slurm tells its end in whole seconds
expect kill -KILL "$(pgrep --oldest --full "$TEST_CLUSTER_DIR/.*job0*$job/slurm_script")"
until_holds 60 is_over "$job" || complain "job $job is not over"
expect_exit 1 grep -q '"event":"end"' other/attempts.jsonl
later=$(sbatch --parsable --nodes=2 --ntasks=2 --time=5 "$slurm/train.sbatch" run.toml --set train.steps=1000000 --set log.dir=other)
until_holds 60 has_begun other 2 || complain "the later job does not begin: $(squeue; tail ./*.log)"
expect python3 -c 'import json, sys
events = [json.loads(line) for line in open("other/attempts.jsonl")]
ends = [one for one in events if one["event"] == "end"]
assert len(ends) == 1 and ends[0]["job"] == sys.argv[1], events
assert [one["job"] for one in events if one["event"] == "released"] == [sys.argv[1]], events' "$job"
expect scancel "$later"
until_holds 60 is_over "$later" || complain "job $later is not over"
expectations_met
