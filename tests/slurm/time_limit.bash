#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# A chain of jobs of one minute on a real Slurm: each trains until its save just fits in before its end, the next goes on, no step is
# lost or made twice, and the losses are those of a run without an end. Usage: time_limit.bash BUILD_DIR [LINKS [slow]]
# slow: a save takes 0.1 to 8 s, and one of the nodes is slower than the other now and then.
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
links=${2:-3} form=${3:-even}
begin_cluster "$1" 2
write_run
options=(--set train.global_batch=256 --set checkpoint.every_steps=0)
expect_exit 0 ranks 2 train run.toml "${options[@]}" --set log.dir=short --set train.steps=100
# All but the last are trained to their end, of which a job of a minute has 50 s or so.
steps=$(python3 -c 'import json, statistics, sys
steps = [json.loads(line) for line in open("short/metrics.jsonl")]
links, form = int(sys.argv[1]), sys.argv[2]
print(round((40 if form == "slow" else 55) * (links - 0.8) / statistics.median(one["step_s"] for one in steps if one["event"] == "step")))' "$links" "$form")
options+=(--set train.steps="$steps")
expect_exit 0 ranks 2 train run.toml "${options[@]}" --set log.dir=calm
losses calm/metrics.jsonl >calm.txt

if [[ $form == slow ]]; then
  # What comes between the program and its file system: the index of a save is brought to the disk after a while.
  cat >slow.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
int fdatasync(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t n = readlink(link, path, sizeof path - 1);
  path[n < 0 ? 0 : n] = 0;
  if (strstr(path, "index.h5")) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    usleep(100000 + now.tv_nsec / 1000 % 7900 * 1000);
  }
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}
END
  expect cc -shared -fPIC -O1 -o slow.so slow.c -ldl
  options+=(--set checkpoint.every_steps=150)
  export LD_PRELOAD=$PWD/slow.so
fi

# Slurm looks at the clock every 30 s: its warning comes at any time of a job of one minute, and is the script's.
job=$(sbatch --parsable --nodes=2 --ntasks=2 --time=1 --job-name=minutes "$slurm/chain.sbatch" run.toml "${options[@]}" --set log.dir=chained)
unset LD_PRELOAD
[[ $job =~ ^[0-9]+$ ]] || complain "not submitted: $job"
if [[ $form == slow ]]; then
  until test -e chained/FINISHED || no_jobs_of minutes; do
    timeout $((RANDOM % 4 + 1)) sh -c 'while :; do :; done'
    sleep $((RANDOM % 5))
  done
fi
until_holds $((links * 120)) test -e chained/FINISHED || complain "the chain did not come to its end: $(squeue; tail -n 5 minutes-*.log)"
until_holds 30 no_jobs_of minutes || complain "jobs are left: $(squeue)"
losses chained/metrics.jsonl >chained.txt
expect cmp calm.txt chained.txt
expect test "$(steps_made chained/metrics.jsonl)" -eq "$steps"
for log in minutes-*.log; do
  job=${log#minutes-}
  scontrol --oneliner show job "${job%.log}"
done >jobs.txt
[[ -z ${TIME_LIMIT_KEEP-} ]] || cp -r chained jobs.txt "$TIME_LIMIT_KEEP"
expect python3 -c 'import datetime, json, re, sys
attempts = [json.loads(line) for line in open("chained/attempts.jsonl")]
begins = [one for one in attempts if one["event"] == "begin"]
ends = [one for one in attempts if one["event"] == "end"]
assert len(begins) == len(ends) >= 2, attempts
assert all(one["code"] == 75 and one["reason"] == "saved and stopped: time limit" for one in ends[:-1]), ends
assert ends[-1]["code"] == 0
assert [one["from_step"] for one in begins[1:]] == [one["step"] for one in ends[:-1]], attempts
facts = {one["JobId"]: one for one in (dict(re.findall(r"(\w+)=(\S*)", line)) for line in open("jobs.txt"))}
steps, saves = {}, []
for line in open("chained/metrics.jsonl"):
    record = json.loads(line)
    if record["event"] == "step":
        steps[record["step"]] = record["time"]
    if record["event"] == "checkpoint":
        saves.append(record["committed_s"])
assert sys.argv[1] == "even" or max(saves) > 4 > 2 > min(saves), saves
spare = []
for end in ends[:-1]:
    job = facts[end["job"]]
    assert job["JobState"] == "FAILED" and job["ExitCode"] == "75:0", job
    limit = datetime.datetime.fromisoformat(job["StartTime"]).timestamp() + 60
    spare.append(limit - steps[end["step"]])
print(len(begins), "jobs; from the last step of each to the end of its time:", " ".join("%.1f" % one for one in spare), "s")
assert sys.argv[1] == "slow" or max(spare) <= 10, spare' "$form"
grep "from the last step" "$said"
expectations_met
