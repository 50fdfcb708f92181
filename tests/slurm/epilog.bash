#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Nodes that are cleared for some seconds after a job: the next job of a chain that takes 2 to 4 nodes has all of them again.
# Usage: epilog.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
export TEST_CLUSTER_EPILOG_S=4
begin_cluster "$1" 4
write_run
job=$(env -u FOURFOLD_MPI "$fourfold" submit run.toml --nodes 2-4 --tasks-per-node 1 --time 5 --chain 3 --name elastic --set log.dir=elastic \
  --set train.steps=100000 --go 2>"$errors")
[[ $job =~ ^[0-9]+$ ]] || complain "not submitted: $(cat "$errors")"
for start in 1 2 3; do
  until_holds 90 has_begun elastic "$start" || complain "start $start does not come: $(squeue)"
  until_holds 60 eval "python3 -c 'import json, sys
records = [json.loads(line) for line in open(\"elastic/metrics.jsonl\")]
at = [i for i, one in enumerate(records) if one[\"event\"] in (\"start\", \"resume\")]
sys.exit(not (len(at) == $start and len(records) > at[-1] + 5))'" || complain "start $start makes no steps"
  expect_exit 0 "$fourfold" status elastic
  expect_stdout 'of those that its jobs ask for, 3 leave some idle'
  expect scancel --signal=USR2 "$(squeue --noheader --name=elastic --states=RUNNING --format=%A)"
done
until_holds 60 no_jobs_of elastic || complain "jobs are left: $(squeue)"
expect python3 -c 'import json
attempts = [json.loads(line) for line in open("elastic/attempts.jsonl")]
begins = [one for one in attempts if one["event"] == "begin"]
assert [one["nodes"] for one in begins] == [4, 4, 4], begins'
expectations_met
