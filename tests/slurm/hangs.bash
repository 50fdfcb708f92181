#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# A rank that is stopped, leaves or takes another branch, on a real Slurm: it is named with its host and the call, within
# seconds of the limit, and the job ends with 86 instead of burning its time. Usage: hangs.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 4
write_run
hang_on_ranks=$1/bin/hang_on_ranks


# A training of which one rank is stopped; rank 0 itself; and one whose limit is the call it waits in.
for rank in 5 0; do
  job=$(FOURFOLD_REQUEUE=0 sbatch --parsable --nodes=4 --ntasks=8 --time=10 "$slurm/train.sbatch" run.toml --set log.dir="stopped$rank" \
    --set train.steps=1000000 --set mesh.tp=2 --set watchdog.silence_s=4)
  until_holds 60 has_steps "stopped$rank" 20
  expect kill -STOP "$(ranks_of "$job" "$rank")"
  begun=$SECONDS
  expect_job "$job" 30 FAILED 86
  [[ $((SECONDS - begun)) -le 20 ]] || complain "it took $((SECONDS - begun)) s to end"
  expect grep -q '"code": 86' "stopped$rank/exit.json"
  expect grep -q "rank $rank on node$((rank / 2)) has given no sign of life" "fourfold-$job.log"
  expect python3 -c 'import json, sys
rank = int(sys.argv[1])
hang = json.load(open(f"stopped{rank}/hang.json"))
assert [one["rank"] for one in hang["culprits"]] == [rank] and hang["culprits"][0]["host"] == f"node{rank // 2}"
assert len(hang["waiting"]) == 7, hang["waiting"]
end = json.load(open(f"stopped{rank}/exit.json"))
assert end["bad_nodes"] == [f"node{rank // 2}"] and end["retry"] is True and end["step"] >= 20, end
told = [one for one in hang["ranks"] if one.get("stack")]
assert len(told) == 7 and all(any("main" in line for line in one["stack"]) for one in told)' "$rank"
  expect grep -q '"event":"end".*"code":86' "stopped$rank/attempts.jsonl"
done

# A rank that is stopped before it comes to MPI_Init: the job goes on without its node.
cat >stops_once <<END
#!/bin/bash
[[ \$1 != train || \$SLURM_PROCID != \$STOPPED_RANK || \${SLURM_RESTART_COUNT:-0} != 0 ]] || kill -STOP \$\$
exec $fourfold "\$@"
END
chmod 755 stops_once
# unborn DIR RANKS RANK: on two nodes, of which the second has that rank.
unborn() {
  local dir=$1 ranks=$2 rank=$3 job
  job=$(STOPPED_RANK=$rank FOURFOLD=$PWD/stops_once FOURFOLD_SLURM=$slurm FOURFOLD_REQUEUE=1 sbatch --parsable --nodes=2 --ntasks="$ranks" \
    --time=10 "$slurm/train.sbatch" run.toml --set log.dir="$dir" --set watchdog.start_s=3)
  until_holds 60 grep -q '"code": 86' "$dir/exit.json" || complain "no code in exit.json: $(cat "$dir/exit.json" "fourfold-$job.log")"
  expect python3 -c 'import json, sys
dir, ranks, rank = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
end, hang = json.load(open(dir + "/exit.json")), json.load(open(dir + "/hang.json"))
assert end["bad_nodes"] == ["node1"] and end["retry"] is True and f"rank {rank} on node1 has not come" in end["reason"], end
assert hang["culprits"][0]["rank"] == rank and hang["waiting"] == [one for one in range(ranks) if one != rank], hang' "$dir" "$ranks" "$rank"
  expect_job "$job" 60 COMPLETED 0
  expect grep -q "rank $rank on node1 has not come to MPI_Init within 3 s" "fourfold-$job.log"
  expect grep -q "job $job leaves out node1" "fourfold-$job.log"
  expect grep -q '"event":"end".*"code":86' "$dir/attempts.jsonl"
  expect test -e "$dir/FINISHED"
  expect test -z "$(find "$dir" -name '.start*')"
}
unborn unborn 4 3
unborn alone 2 1 # one task on a node: Slurm calls its layout another one

# hangs KIND RANK TEXT...: of tasks that srun started; what it says on stderr.
hangs() {
  local kind=$1 rank=$2 begun=$SECONDS code=0 text
  shift 2
  rm -f hang.json
  srun --nodes=4 --ntasks=4 --mpi=pmi2 --kill-on-bad-exit=1 "$hang_on_ranks" "$kind" "$rank" >"$output" 2>"$errors" || code=$?
  [[ $code -ne 0 && $((SECONDS - begun)) -le 15 ]] || complain "$kind: code $code after $((SECONDS - begun)) s"
  expect_stderr 'the run hangs and is ended (code 86)'
  expect_stderr "rank $rank on node$rank"
  for text in "$@"; do expect_stderr "$text"; done
  expect python3 -c 'import json, sys
assert [one["rank"] for one in json.load(open("hang.json"))["culprits"]] == [int(sys.argv[1])]' "$rank"
}
hangs exit 2 'has ended without a word' "wait in all_reduce #"
hangs exit 0 'has ended without a word'
hangs axis 3 "is in all_reduce #" "of 'pair'" 'another branch'
hangs sleep 1 'has not come' 'step 20'
expectations_met
