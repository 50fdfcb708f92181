#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# What `fourfold job end` makes of a start: one that another job has overtaken, or that had no room to say how it ended, is not to
# be started again, whatever its launcher made of that. Usage: job_program.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
# shellcheck source=tests/integration/small_run.bash
. "$(dirname "$0")/small_run.bash"
begin "$1"

small_run 1000000
# Two jobs of one run that begin at the same time.
is_running() { grep -qs '"reason": *"running"' run/exit.json && grep -qs '"step":5,' run/metrics.jsonl; }

SLURM_JOB_ID=31 expect_exit 0 "$fourfold" job begin run.toml
SLURM_JOB_ID=32 "$fourfold" train run.toml --progress none >train.log 2>&1 &
winner=$!
for _ in $(seq 600); do
  is_running && break
  sleep 0.1
done
expect is_running
cp run/exit.json before.json
SLURM_JOB_ID=31 expect_exit 78 "$fourfold" job end run.toml --launcher-code 137
expect_stdout 'stop'
expect_stderr 'job 32 trains this run'
expect cmp run/exit.json before.json # the winner's
expect python3 -c 'import json
end = [json.loads(line) for line in open("run/attempts.jsonl")][-1]
assert end["job"] == "31" and end["code"] == 78 and end["retry"] is False and end["step"] is None, end'
kill -USR2 "$winner"
wait "$winner"
[[ $? -eq 75 ]] || complain "the winner did not save and stop: $(cat train.log)"
# Nor if the winner has ended before the other is asked how it ended.
SLURM_JOB_ID=31 expect_exit 78 "$fourfold" job end run.toml --launcher-code 143
expect_stdout 'stop'

# A rank that has left without a word has gone with its node, if that does not answer Slurm: all that speak of the end say so.
export SLURM_JOB_ID=33 SLURM_JOB_NUM_NODES=2
expect_exit 0 "$fourfold" job begin run.toml --set log.dir=lost
ranks 2 train run.toml --set log.dir=lost --set train.micro_batch=2 --progress none >train.log 2>&1 &
launcher=$!
for _ in $(seq 600); do
  ! grep -qs '"step":5,' lost/metrics.jsonl || break
  sleep 0.1
done
for process in $(pgrep --full fourfold-train); do
  { tr '\0' '\n' <"/proc/$process/environ" | grep -cxE 'SLURM_JOB_ID=33|PMI_RANK=1' | grep -qx 2 && kill -KILL "$process"; } 2>/dev/null
done
wait "$launcher"
# Hydra ends all ranks with the first: nothing is told.
expect_exit 85 "$fourfold" job end run.toml --set log.dir=lost --launcher-code 137 --nodes-gone n2
expect_stdout 'again n2'
expect_stderr 'its ranks have ended without a word; n2 does not answer Slurm'
expect_exit 85 "$fourfold" job end run.toml --set log.dir=lost --launcher-code 137 --nodes-gone n1,n2
expect_stdout 'again '
expect_stderr 'killed without a word'
# As the rank that is left tells it under srun.
python3 -c 'import json
exit = json.load(open("lost/exit.json"))
assert exit["code"] is None and exit["job"] == "33", exit
exit |= {"code": 86, "reason": "hang: rank 1 on here has ended without a word", "retry": True}
json.dump(exit, open("lost/exit.json", "w"))' || complain "exit.json does not say that it runs"
expect_exit 86 "$fourfold" job end run.toml --set log.dir=lost --launcher-code 137 --nodes-gone n1,n2
expect_exit 85 "$fourfold" job end run.toml --set log.dir=lost --launcher-code 137 --nodes-gone n2
expect_stdout 'again n2'
expect python3 -c 'import json
exit = json.load(open("lost/exit.json"))
end = [json.loads(line) for line in open("lost/attempts.jsonl")][-1]
assert exit["code"] == end["code"] == 85 and exit["bad_nodes"] == ["n2"] and exit["reason"] == end["reason"], (exit, end)
assert exit["reason"].endswith("; n2 does not answer Slurm"), exit'
expect_exit 0 "$fourfold" status lost
expect_stdout 'failed (code 85)'
unset SLURM_JOB_ID SLURM_JOB_NUM_NODES
expect_exit 64 "$fourfold" job end run.toml --launcher-code 75 --preempted --time-limit

# A finished run answers for itself alone: not for one with other keys that was given its log.dir.
expect_exit 0 "$fourfold" train run.toml --set log.dir=done --set train.steps=2
SLURM_JOB_ID=51 expect_exit 0 "$fourfold" job begin run.toml --set log.dir=done --set train.steps=2
expect_stdout 'finished'
for other in train.seed=7 optim.lr=0.5; do
  SLURM_JOB_ID=51 expect_exit 78 "$fourfold" job begin run.toml --set log.dir=done --set train.steps=2 --set "$other"
  expect_stderr "${other%=*}"
  expect_no_stdout finished
done
SLURM_JOB_ID=51 expect_exit 0 "$fourfold" job begin run.toml --set log.dir=done --set train.steps=2 --set train.seed=7 --allow-change train.seed
expect_stdout 'finished'

# What only a start can tell is left to one: another base of the weights, data that were prepared anew, a word that train may not know.
SLURM_JOB_ID=51 expect_exit 0 "$fourfold" job begin run.toml --set log.dir=done --set train.steps=2 --progress none --progress=plain
expect_stdout 'finished'
for other in --resume-weights-only=elsewhere --sett; do
  SLURM_JOB_ID=52 expect_exit 0 "$fourfold" job begin run.toml --set log.dir=done --set train.steps=2 "$other"
  expect_stdout 'start'
done
SLURM_JOB_ID=53 expect_exit 0 "$fourfold" job begin run.toml --set log.dir=done --set train.steps=2 \
  --set checkpoint.resume=elsewhere --set checkpoint.weights_only=true
expect_stdout 'start'
mkdir kept && cp tokens.* kept
tr 'a-m' 'n-z' <text.txt >other.txt
expect_exit 0 "$fourfold" data prepare --output tokens --append-eot other.txt
SLURM_JOB_ID=54 expect_exit 0 "$fourfold" job begin run.toml --set log.dir=done --set train.steps=2
expect_stdout 'start'
expect_exit 78 "$fourfold" train run.toml --set log.dir=done --set train.steps=2
cp kept/* .
touch tokens.bin # a copy is no other data
SLURM_JOB_ID=55 expect_exit 0 "$fourfold" job begin run.toml --set log.dir=done --set train.steps=2
expect_stdout 'finished'

# A wrong word on the command line of train, which job begin passes over: another start would not mend that, whatever srun made of it.
for code in 1 137 255; do
  SLURM_JOB_ID=7$code expect_exit 0 "$fourfold" job begin run.toml --set log.dir=typed
  SLURM_JOB_ID=7$code expect_exit 64 "$fourfold" train run.toml --set log.dir=typed --stpes 9
  SLURM_JOB_ID=7$code expect_exit 64 "$fourfold" job end run.toml --set log.dir=typed --launcher-code "$code"
  expect_stdout stop && expect_stderr 'wrong command line'
done
expect test "$(grep -c '"event":"refused"' typed/attempts.jsonl)" -eq 3
# Without a job nothing says that the two belong together.
expect_exit 78 "$fourfold" job begin run.toml --set log.dir=typed --set train.stepz=3
expect test "$(grep -c '"event":"refused"' typed/attempts.jsonl)" -eq 3

# A command that is refused beside the job's own start, which has made steps, says nothing of that start.
SLURM_JOB_ID=81 expect_exit 0 "$fourfold" job begin run.toml --set log.dir=beside
SLURM_JOB_ID=81 "$fourfold" train run.toml --progress none --set log.dir=beside >train.log 2>&1 &
trainer=$!
for _ in $(seq 600); do
  ! grep -qs '"step":5,' beside/metrics.jsonl || break
  sleep 0.1
done
SLURM_JOB_ID=81 expect_exit 78 "$fourfold" job begin run.toml --set log.dir=beside --set train.stepz=5
SLURM_JOB_ID=81 expect_exit 64 "$fourfold" train run.toml --set log.dir=beside --stpes 9
kill -KILL "$trainer"
wait "$trainer" 2>/dev/null
SLURM_JOB_ID=81 expect_exit 85 "$fourfold" job end run.toml --set log.dir=beside --launcher-code 137
expect_stdout again
expect test "$(grep -c '"event":"refused"' beside/attempts.jsonl)" -eq 0

# A start that lives on nodes that its job does not have is the first of two that Slurm has made of it: the second leaves all to it. On the
# job's own nodes it is what a person runs beside it.
mkdir doubled slurm_bin
# shellcheck disable=SC2016  # of the script
printf '#!/bin/bash\n[[ "$1 $2" == "show hostnames" ]] && echo "$3" | tr , "\\n"\n' >slurm_bin/scontrol
chmod +x slurm_bin/scontrol
count=1
while echo "fourfold-lease 1 aaaaaaaaaaaaaaaa node7 - 77 96 0 $((count++)) -" >doubled/.run-lease; do sleep 1; done &
lives=$!
PATH=$PWD/slurm_bin:$PATH SLURM_JOB_ID=96 SLURM_JOB_NODELIST=node8,node9 expect_exit 93 "$fourfold" job begin run.toml --set log.dir=doubled
expect_stdout superseded
expect_stderr 'Slurm has started this job a second time: this one leaves all to the first'
expect test ! -e doubled/attempts.jsonl
PATH=$PWD/slurm_bin:$PATH SLURM_JOB_ID=96 SLURM_JOB_NODELIST=node6,node7 expect_exit 78 "$fourfold" job begin run.toml --set log.dir=doubled
expect_stderr 'is running here'
kill "$lives"
wait "$lives" 2>/dev/null

# Somebody's own notes are no list of starts, for neither verb.
mkdir noted && echo 'my notes on attempts' >noted/attempts.jsonl
SLURM_JOB_ID=82 expect_exit 78 "$fourfold" job begin run.toml --set log.dir=noted
SLURM_JOB_ID=82 expect_exit 78 "$fourfold" job end run.toml --set log.dir=noted --launcher-code 1
expect_stderr 'attempts.jsonl is not a file that fourfold wrote'
expect grep -qx 'my notes on attempts' noted/attempts.jsonl
expect test "$(wc -l <noted/attempts.jsonl)" -eq 1

# A start whose ranks live on where the scheduler has given their node up: the next start of the same job, or of its chain, takes
# their lease, and they end with 93 while it still waits for that. What their script then notes must not end the one that goes on.
# overtaken LOG_DIR ENVIRONMENT_OF_OLD... -- ENVIRONMENT_OF_NEW...
overtaken() {
  local run=$1 old=() code
  shift
  while [[ $1 != -- ]]; do old+=("$1") && shift; done
  shift
  expect_exit 0 env "${old[@]}" "$fourfold" job begin run.toml --set log.dir="$run"
  {
    env "${old[@]}" "$fourfold" train run.toml --progress none --set log.dir="$run" && code=0 || code=$?
    env "${old[@]}" "$fourfold" job end run.toml --set log.dir="$run" --launcher-code "$code" && code=0 || code=$?
    echo "$code" >"$run.code"
  } >"$run.log" 2>&1 &
  for _ in $(seq 600); do
    ! grep -qs '"step":5,' "$run/metrics.jsonl" || break
    sleep 0.1
  done
  expect_exit 0 env "$@" "$fourfold" job begin run.toml --set log.dir="$run"
  expect_stdout 'start' && expect_stderr 'took the lease of this directory from an earlier start of this run'
  wait $!
  [[ $(<"$run.code") == 93 ]] || complain "the earlier start did not end with 93: $(cat "$run.log")"
  expect grep -qx superseded "$run.log"
  expect_exit 0 env "$@" "$fourfold" train run.toml --progress none --set log.dir="$run" --set train.steps=10
  expect_exit 0 env "$@" "$fourfold" job end run.toml --set log.dir="$run" --set train.steps=10 --launcher-code 0
  expect_stdout 'finished'
  # The order of the lines: the later start is noted before the earlier one can have noticed.
  expect python3 -c 'import json, sys
lines = [json.loads(line) for line in open(sys.argv[1] + "/attempts.jsonl")]
assert [one["event"] for one in lines] == ["begin", "end", "begin", "end"], lines
assert [one["code"] for one in lines if one["event"] == "end"] == [85, 0], lines
assert "no end was noted when the next start" in lines[1]["reason"] and lines[1]["time"] < lines[2]["time"], lines' "$run"
}
overtaken requeued SLURM_JOB_ID=51 -- SLURM_JOB_ID=51 SLURM_RESTART_COUNT=1
overtaken linked SLURM_JOB_ID=52 FOURFOLD_CHAIN=52 -- SLURM_JOB_ID=53 FOURFOLD_CHAIN=52

# An end that no other start mends, of which its script could not tell: the next job of the chain notes it, and is refused for it.
export FOURFOLD_CHAIN=54
SLURM_JOB_ID=54 expect_exit 0 "$fourfold" job begin run.toml --set log.dir=bad --set 'optim.name="sgd"' --set optim.lr=1e30
SLURM_JOB_ID=54 expect_exit 65 "$fourfold" train run.toml --progress none --set log.dir=bad --set 'optim.name="sgd"' --set optim.lr=1e30
SLURM_JOB_ID=55 expect_exit 65 "$fourfold" job begin run.toml --set log.dir=bad --set 'optim.name="sgd"' --set optim.lr=1e30
expect_stderr 'job 54 of this chain ended with code 65'
expect python3 -c 'import json
lines = [json.loads(line) for line in open("bad/attempts.jsonl")]
assert [(one["event"], one["job"]) for one in lines] == [("begin", "54"), ("end", "54"), ("refused", "55")] and lines[1]["code"] == 65, lines'
unset FOURFOLD_CHAIN

# A dry run is not done again, whatever has ended it.
for code in 0 78 137; do
  SLURM_JOB_ID=62 expect_exit "${code/137/78}" "$fourfold" job end run.toml --set log.dir=dry --dry-run --launcher-code "$code"
  if [[ $code == 0 ]]; then expect_stdout finished; else expect_stdout stop; fi
done
expect_stderr 'the dry run has said nothing of its end (the launcher ended with code 137'
expect test ! -e dry

# A job that was told to stop before it had launched anything goes on later.
SLURM_JOB_ID=61 expect_exit 0 "$fourfold" job begin run.toml --set log.dir=early
SLURM_JOB_ID=61 expect_exit 75 "$fourfold" job end run.toml --set log.dir=early --stopped-by SIGUSR2
expect_stdout 'again'
expect_stderr 'stopped before the first step: SIGUSR2'
SLURM_JOB_ID=61 SLURM_RESTART_COUNT=1 expect_exit 0 "$fourfold" job begin run.toml --set log.dir=early
SLURM_JOB_ID=61 expect_exit 64 "$fourfold" job end run.toml --set log.dir=early
expect_stderr '--launcher-code or --stopped-by'

# What a job began with is what its later starts go on with, whatever becomes of the run file.
sed 's/^dir = .*/dir = "kept"/' run.toml >mine.toml
cp mine.toml as_it_was.toml
SLURM_JOB_ID=71 expect_exit 0 "$fourfold" job begin mine.toml
copy=$PWD/kept/submitted/71/run.toml
expect test "$(<"$output")" = "$(printf '%s\n' start all --run-file mine.toml "$copy")"
expect cmp "$copy" as_it_was.toml
SLURM_JOB_ID=71 expect_exit 85 "$fourfold" job end mine.toml --launcher-code 137
sed -i 's/^hidden = .*/hidden = 48/' mine.toml
SLURM_JOB_ID=71 SLURM_RESTART_COUNT=1 expect_exit 0 "$fourfold" job begin mine.toml
expect_stdout "$copy"
expect_stderr "mine.toml has changed since it was submitted: this chain goes on with what is in $PWD/kept/submitted/71"
rm mine.toml
SLURM_JOB_ID=71 SLURM_RESTART_COUNT=2 expect_exit 0 "$fourfold" job begin mine.toml --kept-run-file "$copy"
expect_stdout "$copy"
SLURM_JOB_ID=71 SLURM_RESTART_COUNT=2 expect_exit 85 "$fourfold" job end mine.toml --kept-run-file "$copy" --launcher-code 137
# Where Slurm does not say which copy that is, it is looked for where the run file's log.dir is by now; nothing is begun in another run's.
sed 's/^hidden = .*/hidden = 48/' as_it_was.toml >mine.toml
SLURM_JOB_ID=71 SLURM_RESTART_COUNT=3 expect_exit 0 "$fourfold" job begin mine.toml --later-start --stuck-after 0
expect_stdout "$copy"
SLURM_JOB_ID=71 SLURM_RESTART_COUNT=3 expect_exit 85 "$fourfold" job end mine.toml --kept-run-file "$copy" --launcher-code 137
sed -i 's/^dir = .*/dir = "another"/' mine.toml
for make in true 'mkdir another' 'cp kept/attempts.jsonl another'; do
  $make
  SLURM_JOB_ID=70 SLURM_RESTART_COUNT=1 expect_exit 85 "$fourfold" job begin mine.toml --later-start --stuck-after 0
  expect_no_stdout start
  expect_stderr "Slurm does not say which run file this job goes on with, and in $PWD/another, the log.dir of mine.toml by now, no earlier start of it began"
  expect test ! -e another/submitted
done
expect cmp kept/attempts.jsonl another/attempts.jsonl
# What the start before it went on with is gone, or the user's run file is.
cp mine.toml moved.toml
SLURM_JOB_ID=77 expect_exit 0 "$fourfold" job begin moved.toml --set log.dir=kept
rm -r kept/submitted/77
SLURM_JOB_ID=77 SLURM_RESTART_COUNT=1 expect_exit 78 "$fourfold" job begin moved.toml --set log.dir=kept --later-start
expect_stderr 'kept/submitted/77/run.toml is gone, where this chain keeps what it trains'
rm moved.toml
SLURM_JOB_ID=77 SLURM_RESTART_COUNT=2 expect_exit 85 "$fourfold" job begin moved.toml --set log.dir=kept --later-start
expect_stderr 'Slurm does not say which run file this job goes on with, and cannot read the run file moved.toml'
# Another run file in the same job is another run; so is one that a person has mended before the same start tries again.
sed 's/^hidden = .*/hidden = 64/' as_it_was.toml >second.toml
SLURM_JOB_ID=76 expect_exit 0 "$fourfold" job begin as_it_was.toml
SLURM_JOB_ID=76 SLURM_RESTART_COUNT=1 expect_exit 0 "$fourfold" job begin second.toml
expect_stdout "$PWD/kept/submitted/76-2/run.toml"
SLURM_JOB_ID=72 expect_exit 0 "$fourfold" job begin second.toml
SLURM_JOB_ID=72 expect_exit 85 "$fourfold" job end second.toml --launcher-code 137
echo '# mended' >>second.toml
SLURM_JOB_ID=72 expect_exit 0 "$fourfold" job begin second.toml
expect_stdout "$PWD/kept/submitted/72-2/run.toml"
expect cmp second.toml kept/submitted/72-2/run.toml
# Without a job there is no later start; nor is anything kept by a start that is refused.
expect_exit 0 "$fourfold" job begin as_it_was.toml
expect_no_stdout run-file
SLURM_JOB_ID=73 expect_exit 78 "$fourfold" job begin as_it_was.toml --set train.stepz=3
SLURM_JOB_ID=74 expect_exit 0 "$fourfold" job begin as_it_was.toml --set log.dir=refusing
SLURM_JOB_ID=74 expect_exit 78 "$fourfold" train refusing/submitted/74/run.toml --set log.dir=refusing --set mesh.tp=3
expect test -e refusing/submitted/74/run.toml
SLURM_JOB_ID=74 expect_exit 78 "$fourfold" job end as_it_was.toml --set log.dir=refusing --launcher-code 78
expect test ! -e refusing/submitted
expect test ! -e kept/submitted/73
# The small files that the run file names are kept, too.
expect_exit 0 "$fourfold" plan --schedule 1f1b --stages 2 --micro-batches 4 --csv order.csv
SLURM_JOB_ID=75 expect_exit 0 "$fourfold" job begin as_it_was.toml --set log.dir=ordered --set mesh.pp=2 --set model.layers=2 --set mesh.schedule=order.csv \
  --set train.micro_batch=1
expect_stdout "mesh.schedule=\"$PWD/ordered/submitted/75/mesh.schedule/order.csv\""
expect cmp order.csv ordered/submitted/75/mesh.schedule/order.csv
# A chain that is over: whoever begins another run under its name means the run file as it is. One that is known by its copy does not.
sed 's/^steps = .*/steps = 3/; s/^dir = .*/dir = "over"/' as_it_was.toml >over.toml
export FOURFOLD_CHAIN=sweep-2
SLURM_JOB_ID=81 expect_exit 0 "$fourfold" job begin over.toml
SLURM_JOB_ID=81 expect_exit 0 "$fourfold" train over/submitted/sweep-2/run.toml
SLURM_JOB_ID=81 expect_exit 0 "$fourfold" job end over.toml --launcher-code 0
sed -i 's/^steps = .*/steps = 5/' over.toml
SLURM_JOB_ID=82 expect_exit 0 "$fourfold" job begin over.toml --kept-run-file over/submitted/sweep-2/run.toml
expect_stdout finished
SLURM_JOB_ID=83 expect_exit 0 "$fourfold" job begin over.toml
expect_stdout start
expect cmp over.toml over/submitted/sweep-2-2/run.toml
# A launcher that has started nothing of that (`srun --mpi=list`) has not finished it, whatever FINISHED says of fewer steps.
SLURM_JOB_ID=83 expect_exit 78 "$fourfold" job end over.toml --kept-run-file over/submitted/sweep-2-2/run.toml --launcher-code 0
expect_stdout stop
unset FOURFOLD_CHAIN
# A copy of the run's folder is no run: its kept run file trains where it lay.
cp -r over copied
SLURM_JOB_ID=84 expect_exit 78 "$fourfold" job begin copied/submitted/sweep-2/run.toml
expect_stderr 'submit your run file anew'
# Where somebody has removed it, that is said, and noted where the run is.
for words in 'gone/submitted/89/run.toml' 'as_it_was.toml --kept-run-file gone/submitted/89/run.toml'; do
  rm -rf gone
  SLURM_JOB_ID=89 expect_exit 0 "$fourfold" job begin as_it_was.toml --set log.dir=gone
  rm -r gone/submitted
  read -ra words <<<"$words"
  SLURM_JOB_ID=90 expect_exit 78 "$fourfold" job begin "${words[@]}"
  expect_stderr 'gone/submitted/89/run.toml is gone, where this chain keeps what it trains; submit your run file anew'
  expect grep -q '"event":"refused".*"job":"90".*is gone, where' gone/attempts.jsonl
done
# What a user has in the folder of a start that is refused stays there.
SLURM_JOB_ID=85 expect_exit 0 "$fourfold" job begin as_it_was.toml --set log.dir=annotated
echo mine >annotated/submitted/85/notes.txt
SLURM_JOB_ID=85 expect_exit 78 "$fourfold" train annotated/submitted/85/run.toml --set log.dir=annotated --set mesh.tp=3
SLURM_JOB_ID=85 expect_exit 78 "$fourfold" job end as_it_was.toml --set log.dir=annotated --launcher-code 78
expect grep -qx mine annotated/submitted/85/notes.txt
# A run file that lies where the run writes its own is not kept, and not replaced.
mkdir own
sed 's/^dir = .*/dir = "own"/' as_it_was.toml >own/config.toml
SLURM_JOB_ID=86 expect_exit 0 "$fourfold" job begin own/config.toml
expect_stderr 'own/config.toml is not kept for later starts'
expect test ! -e own/submitted
# What a person types counts, not the copy; what cannot be kept is said, and what is no chain's name.
SLURM_JOB_ID=75 SLURM_RESTART_COUNT=1 expect_exit 0 "$fourfold" job begin as_it_was.toml --set log.dir=ordered --set mesh.pp=2 --set model.layers=2 \
  --set train.micro_batch=1 --set mesh.schedule=gpipe
expect_stdout ordered/submitted/75/run.toml
expect_no_stdout mesh.schedule
for chain in a/b .hidden; do
  FOURFOLD_CHAIN=$chain SLURM_JOB_ID=87 expect_exit 0 "$fourfold" job begin as_it_was.toml --set log.dir=odd --stuck-after 0
  expect_stderr 'as_it_was.toml is not kept for later starts, which read it anew: no later start would find it'
done
FOURFOLD_CHAIN='two words' SLURM_JOB_ID=88 expect_exit 0 "$fourfold" job begin as_it_was.toml --set log.dir=odd
expect_stderr 'FOURFOLD_CHAIN=two words is ignored'
cp as_it_was.toml $'caf\xe9.toml'
SLURM_JOB_ID=89 expect_exit 0 "$fourfold" job begin $'caf\xe9.toml' --set log.dir=latin
expect_stderr 'is not kept for later starts, which read it anew: its path, or log.dir, is not UTF-8'
expect test ! -e latin/submitted
# After a STOP file that a person has removed, the chain goes on.
SLURM_JOB_ID=90 expect_exit 0 "$fourfold" job begin as_it_was.toml --set log.dir=paused
SLURM_JOB_ID=90 "$fourfold" train paused/submitted/90/run.toml --set log.dir=paused --progress none >train.log 2>&1 &
trainer=$!
for _ in $(seq 600); do
  ! grep -qs '"step":5,' paused/metrics.jsonl || break
  sleep 0.1
done
touch paused/STOP
wait "$trainer"
SLURM_JOB_ID=90 expect_exit 75 "$fourfold" job end as_it_was.toml --set log.dir=paused --launcher-code 75
expect_stdout stop
rm paused/STOP
SLURM_JOB_ID=90 SLURM_RESTART_COUNT=1 expect_exit 0 "$fourfold" job begin as_it_was.toml --set log.dir=paused
expect_stdout paused/submitted/90/run.toml
# A record that leads elsewhere is none.
sed -i 's|"copy": "run.toml"|"copy": "../../../run.toml"|' kept/submitted/71/kept.json
SLURM_JOB_ID=71 SLURM_RESTART_COUNT=9 expect_exit 65 "$fourfold" job begin second.toml --kept-run-file "$copy"
expect_stderr 'kept.json is not what fourfold writes'

# A restart inside a job is a launch of its own, with a mesh for what is left. Where none fits, nothing is begun.
export SLURM_JOB_ID=96 SLURM_JOB_NUM_NODES=4 SLURM_NTASKS=4
expect_exit 0 "$fourfold" job begin run.toml --set log.dir=inside --set train.micro_batch=1 --set mesh.dp=4 --tell-files
expect cmp "$output" <(printf '%s\n' start all --run-file run.toml "$PWD/inside/submitted/96/run.toml" --exit-file "$PWD/inside/exit.json")
expect_exit 85 "$fourfold" job end run.toml --set log.dir=inside --launcher-code 137
expect_stdout again
export FOURFOLD_LAUNCH=1 SLURM_JOB_NUM_NODES=3 SLURM_NTASKS=3
expect_exit 0 "$fourfold" job begin run.toml --set log.dir=inside --set train.micro_batch=1 --set mesh.dp=4
expect cmp "$output" <(echo queue)
expect test "$(wc -l <inside/attempts.jsonl)" -eq 2
expect_exit 0 "$fourfold" job begin run.toml --set log.dir=inside --set 'mesh.dp="auto"' --set train.global_batch=3
expect_stdout start
expect_exit 0 "$fourfold" status inside --json
expect python3 -c 'import json, sys
starts = [(one["restart"], one["launch"], one["nodes"], one["ended"]) for one in json.load(open(sys.argv[1]))["runs"][0]["attempts"]]
assert starts == [(0, 0, 4, True), (0, 1, 3, False)], starts' "$output"
expect_exit 85 "$fourfold" job end run.toml --set log.dir=inside --launcher-code 137
expect python3 -c 'import json
ends = [json.loads(line) for line in open("inside/attempts.jsonl") if "\"end\"" in line]
assert [one.get("launch") for one in ends] == [None, 1], ends'
unset SLURM_JOB_ID SLURM_JOB_NUM_NODES SLURM_NTASKS FOURFOLD_LAUNCH

# An end that no other start mends has no next job: its script cancels that one.
export SLURM_JOB_ID=104
expect_exit 0 "$fourfold" job begin run.toml --set log.dir=last
expect_exit 78 "$fourfold" job end run.toml --set log.dir=last --launcher-code 78 --next 105
expect_exit 1 grep -q '"next"' last/attempts.jsonl
unset SLURM_JOB_ID

# A kept run file that its user edits, or has removed, when a start ends: the end is noted all the same.
for harm in 'echo micro_batch = >>' 'rm -r'; do
  export SLURM_JOB_ID=103
  rm -rf edited
  expect_exit 0 "$fourfold" job begin run.toml --set log.dir=edited
  kept=$PWD/edited/submitted/103/run.toml
  expect test -e "$kept"
  eval "$harm ${kept%/run.toml}$([[ $harm == rm* ]] || echo /run.toml)"
  expect_exit 85 "$fourfold" job end run.toml --set log.dir=edited --kept-run-file "$kept" --launcher-code 137
  expect_stdout again
  expect grep -q '"event":"end".*"job":"103"' edited/attempts.jsonl
  unset SLURM_JOB_ID
done

# A start that has been overtaken notes its end while the next one asks accounting for it: one end, its own.
mkdir slow
cat >slow/sacct <<'EOF'
#!/bin/bash
[[ $SLURM_JOB_ID == 102 && ! -e was_asked ]] && touch was_asked || exit 1
SLURM_JOB_ID=101 "$FOURFOLD" job end run.toml --set log.dir=both --launcher-code 93
exit 1
EOF
chmod +x slow/sacct
SLURM_JOB_ID=101 FOURFOLD_CHAIN=101 expect_exit 0 "$fourfold" job begin run.toml --set log.dir=both
PATH=$PWD/slow:$PATH FOURFOLD=$fourfold SLURM_JOB_ID=102 FOURFOLD_CHAIN=101 expect_exit 0 "$fourfold" job begin run.toml --set log.dir=both
expect test -e was_asked
expect python3 -c 'import json
ends = [json.loads(line) for line in open("both/attempts.jsonl") if "\"end\"" in line]
assert [(one["job"], one["code"], one["reason"]) for one in ends] == [("101", 93, "a later start of the chain has taken over")], ends'

# The disk is full: rank 0 fails, cannot say so, and the launcher kills the others.
# shellcheck disable=SC2016  # expanded by the shell inside
full_disk='mkdir full && mount -t tmpfs -o size=40k none full || exit 71
export SLURM_JOB_ID=41
"$0" job begin run.toml --set log.dir=full || exit
printf "{\"code\": null, \"reason\": \"running\", \"time\": 5, \"job\": \"41\", \"restart\": 0}" >full/exit.json
[[ $1 == with_room ]] || dd if=/dev/zero of=full/filling bs=1k count=40 status=none 2>/dev/null
"$0" job end run.toml --set log.dir=full --launcher-code 137'
if unshare --mount true 2>/dev/null; then
  expect_exit 73 unshare --mount bash -c "$full_disk" "$fourfold" without
  expect_stdout 'stop' && expect_stderr 'No space left on device'
  rmdir full
  expect_exit 85 unshare --mount bash -c "$full_disk" "$fourfold" with_room
  expect_stdout 'again'
else
  echo "no file system can be mounted here: a full disk is not tried"
fi
expectations_met
