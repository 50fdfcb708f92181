#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# What lies in a run's directory and what is sent to a run: files of the user under the names of the run's own, names that are no
# UTF-8, variables of another job, signals, and a reader of the log that goes. Usage: run_directory.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
# shellcheck source=tests/integration/small_run.bash
. "$(dirname "$0")/small_run.bash"
begin "$1"
unset "${!SLURM_@}" "${!FOURFOLD_@}"

small_run 4 'micro_batch = 2'
printf '%s\n' '[optim]' 'lr = 1e-2' >>run.toml
# rate_of STEP DIR: the learning rate that the newest start logged.
rate_of() { python3 -c 'import json, sys
print([r["lr"] for r in map(json.loads, open(sys.argv[2] + "/metrics.jsonl")) if r.get("step") == int(sys.argv[1]) and r["event"] == "step"][-1])' "$@"; }

# A run file that is config.toml in its own log.dir stays as it is; the next start with more steps has a rate.
mkdir run && cp run.toml run/config.toml
expect_exit 0 "$fourfold" train run/config.toml
expect_stderr 'run/config.toml is the run file of this start and stays as it is'
expect cmp run.toml run/config.toml
(cd run && "$fourfold" train ../run/./config.toml --set log.dir=. --set 'data.train=["../tokens"]' --set train.steps=8 \
  --allow-change=data.train) >"$output" 2>"$errors" || complain "it does not train on"
expect cmp run.toml run/config.toml
expect test "$(rate_of 5 run)" = 0.005
expect_exit 0 "$fourfold" report run --output page.html
# A page of an earlier version had no mark and the style of then, and is known by its title and style; another page by neither.
sed -e 's/<meta name="generator" content="fourfold report"[/]>//' \
  -e 's|</title><style>|</title><style>\n:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;}|' page.html >older.html
expect_exit 0 "$fourfold" report run --output older.html
expect cmp page.html older.html
printf '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/><title>mine · fourfold</title></head></html>\n' >theirs.html
expect_exit 78 "$fourfold" report run --output theirs.html
expect_stderr "theirs.html: is there already, and not made by \`fourfold report\`"
# Somebody's config.toml that is not the run file is in the way, and so are other files that no run has made.
expect_exit 78 "$fourfold" train run.toml --set train.steps=9 --allow-change=data.train
expect_stderr 'run/config.toml is not a file that fourfold wrote (fourfold would write its own there); rename it, or choose another log.dir'
expect cmp run.toml run/config.toml
for name in metrics.jsonl exit.json status.json hang.json attempts.jsonl report.html; do
  mkdir "with-$name" && echo 'of somebody' >"with-$name/$name"
  expect_exit 78 "$fourfold" train run.toml --set "log.dir=with-$name"
  expect_stderr "with-$name/$name is not a file that fourfold wrote"
  SLURM_JOB_ID=5 expect_exit "$([[ $name == report.html ]] && echo 0 || echo 78)" "$fourfold" job begin run.toml --set "log.dir=with-$name"
  expect test "$(cat "with-$name/$name")" = 'of somebody'
done
ln -s ../text.txt with-hang.json/status.json
expect_exit 78 "$fourfold" train run.toml --set log.dir=with-hang.json
expect_stderr 'with-hang.json/status.json is a link'

# The effective configuration that a run writes is a run file of its own, also for a longer run: what was derived is derived again.
expect_exit 0 "$fourfold" train run.toml --set log.dir=first
expect grep -q '^# decay_steps = 4 .*# from train.steps$' first/config.toml
cp first/config.toml again.toml
expect_exit 0 "$fourfold" train again.toml --set train.steps=8
! grep -q 'has no effect' "$errors" || complain 'defaults without effect are told of'
expect test "$(rate_of 5 first)" = 0.005
# The very file as the run file is not replaced either.
cp first/config.toml kept.toml
expect_exit 0 "$fourfold" train first/config.toml --set train.steps=10
expect cmp kept.toml first/config.toml

# Names that are no UTF-8 would make checkpoints that nobody can open: refused before anything is written.
latin=$(printf 'lat\xe9')
mkdir "$latin" && cp run.toml "$latin/run.toml" && cp tokens.bin "$latin/tokens.bin" && cp tokens.idx "$latin/tokens.idx"
for way in "log.dir=$latin" "checkpoint.dir=$latin/checkpoints" "data.train=[\"$latin/tokens\"]" "data.tokenizer=$latin/t.json"; do
  expect_exit 78 "$fourfold" train run.toml --set "$way" --set log.progress=plain
  expect_stderr 'lat\xe9'
  expect_stderr 'is not UTF-8 (run files and checkpoints are)'
done
expect_exit 78 "$fourfold" train run.toml --set log.dir=new --resume="$latin/step-000000001"
expect_exit 78 "$fourfold" train run.toml --set log.dir=new --resume-weights-only="$latin/step-000000001"
expect_exit 78 "$fourfold" plan run.toml --ranks 1 --set "data.tokenizer=$latin"
expect test ! -e new
# The name of a run file may be anything: what a run writes can be read all the same.
expect_exit 0 "$fourfold" train "$latin/run.toml" --set log.dir=utf8
expect python3 -c 'open("utf8/config.toml", encoding="utf-8").read()'
expect_exit 0 "$fourfold" train "$latin/run.toml" --set log.dir=utf8 --set train.steps=6
expect_exit 0 "$fourfold" sample --checkpoint utf8/checkpoints --prompt verse --tokens 2

# Variables that another job has left behind are not believed, and named.
expect_exit 0 env SLURM_JOB_END_TIME=1000 "$fourfold" train run.toml --set log.dir=stale
expect_stderr 'SLURM_JOB_END_TIME=1000 is ignored (that time is over: it was meant for another job)'
expect grep -q '"code": 0' stale/exit.json
expect_exit 0 env SLURM_JOB_END_TIME=Unknown FOURFOLD_DEADLINE=1000 "$fourfold" train run.toml --set log.dir=stale --set train.steps=6
expect_stderr 'SLURM_JOB_END_TIME=Unknown is ignored'
expect_stderr 'FOURFOLD_DEADLINE=1000 is ignored'

for threads in many 0 -2 4x '2,' ','; do
  expect_exit 78 env OMP_NUM_THREADS="$threads" "$fourfold" train run.toml --set log.dir=threads
  expect_stderr "OMP_NUM_THREADS is \"$threads\" (no number of threads, for which OpenMP takes every core)"
done
expect_exit 78 env OMP_NUM_THREADS=100000 "$fourfold" train run.toml --set log.dir=threads
expect_stderr 'OMP_NUM_THREADS is "100000" (more than 4096'
for threads in '' 1 2,1; do
  expect_exit 0 env OMP_NUM_THREADS="$threads" "$fourfold" train run.toml --set log.dir=threads
done
SLURM_JOB_NUM_NODES=two SLURM_NTASKS=-3 expect_exit 0 "$fourfold" job begin run.toml --set log.dir=threads --set train.steps=9
expect_stderr 'SLURM_JOB_NUM_NODES=two is ignored (that is no number)'

# begin_long DIR: a run without an end in sight, in the background; it is ready when it returns.
begin_long() {
  "${@:2}" "$fourfold" train run.toml --set "log.dir=$1" --set train.steps=100000000 --set checkpoint.every_steps=0 \
    --set optim.schedule=constant >"$1.out" 2>&1 </dev/null &
  trainer=$!
  for _ in $(seq 600); do
    grep -qs '"step":3,' "$1/metrics.jsonl" && break
    sleep 0.05
  done
}
ends_with() { # ends_with CODE WHAT: the run in the background does.
  local code=0
  wait "$trainer" || code=$?
  [[ $code -eq $1 ]] || complain "exit code $code, not $1, of a run that got $2"
}
for signal in TERM INT HUP USR1 USR2 XCPU; do
  begin_long "got-$signal"
  kill "-$signal" "$trainer"
  ends_with 75 "$signal"
  expect grep -q '"code": 75' "got-$signal/exit.json"
  expect compgen -G "got-$signal/checkpoints/step-*/MANIFEST.json"
done
# Behind nohup a terminal that goes ends nothing.
begin_long nohup nohup
kill -HUP "$trainer"
sleep 0.5
expect kill -USR2 "$trainer" # it is there
ends_with 75 'HUP under nohup, then USR2'

# Whoever reads the log goes: the run goes on. Its code is that of the first program of the pipe.
"$fourfold" train run.toml --set log.dir=piped --set train.steps=400 --progress plain 2>&1 | head -n 1 >"$output"
code=${PIPESTATUS[0]}
[[ $code -eq 0 ]] || complain "exit code $code, not 0, after head"
expect grep -q '"code": 0' piped/exit.json
expect test -e piped/checkpoints/step-000000400
# Through mpiexec: it passes these on.
for signal in TERM INT USR1; do
  "$MPIEXEC" -n 2 "$fourfold" train run.toml --set "log.dir=mpi-$signal" --set train.steps=100000000 --set train.micro_batch=1 \
    --set checkpoint.every_steps=0 --set optim.schedule=constant >"mpi-$signal.out" 2>&1 </dev/null &
  trainer=$!
  for _ in $(seq 600); do
    grep -qs '"step":3,' "mpi-$signal/metrics.jsonl" && break
    sleep 0.05
  done
  kill "-$signal" "$trainer"
  wait "$trainer" # its own code may be any
  expect grep -q '"code": 75' "mpi-$signal/exit.json"
done

# Files of the user's under names that a run has.
mkdir -p mine/checkpoints
for name in exit.json status.json metrics.jsonl attempts.jsonl hang.json report.html config.toml checkpoints/LATEST checkpoints/.lease; do
  case $name in
    *.jsonl) printf '{"event":"wandb","loss":3}\n' >"mine/$name" ;;
    *.json) printf '{"state":"CA","code":"precious"}\n' >"mine/$name" ;;
    *) printf 'of 1987 · fourfold</title>\n' >"mine/$name" ;;
  esac
  cp -r mine mine.before
  expect_exit 78 "$fourfold" train run.toml --set log.dir=mine
  expect_stderr "$name"
  expect diff -r mine.before mine
  rm -r mine.before "mine/$name"
done
cp mpi-TERM/metrics.jsonl mpi-TERM/config.toml mine && printf 'mine' >theirs.html && ln -s ../theirs.html mine/report.html
expect_exit 78 "$fourfold" report mine
expect_exit 0 "$fourfold" report mine -o made.html
expect_exit 0 "$fourfold" report mine -o made.html
[[ $(cat theirs.html) == mine ]] || complain 'a report was written through a link'

# Outside of jobs: another start has the lease while rank 0 stands still. The other rank ends the run, and tells nothing of that in
# what is the other start's folder; nor does rank 0, when it goes on.
mpiexec -n 2 "$fourfold" train run.toml --set log.dir=taken --set train.steps=100000000 --set checkpoint.every_steps=0 \
  --set optim.schedule=constant --set watchdog.silence_s=5 >taken.out 2>&1 </dev/null &
launcher=$!
for _ in $(seq 600); do
  grep -qs '"step":3,' taken/metrics.jsonl && break
  sleep 0.05
done
read -ra lease <taken/.run-lease
kill -STOP "${lease[5]}"
printf 'fourfold-lease 1 0123456789abcdef %s %s 1 - 0 1 -\n' "${lease[3]}" "${lease[4]}" >taken/.run-lease
rm -rf theirs && cp -r taken theirs
wait "$launcher" && complain 'a run of which a rank stands still ends with 0'
grep -q 'has given no sign of life' taken.out || complain "the rank that stands still is not named: $(tail -n 3 taken.out)"
expect diff -r theirs taken

# What TensorBoard's own reader makes of a start that was killed before it had saved, and one that began again.
if [[ -n ${FOURFOLD_TEST_PYTHON-} ]]; then
  begin_long board
  kill -KILL "$trainer"
  wait "$trainer" 2>/dev/null
  expect_exit 0 "$fourfold" train run.toml --set log.dir=board --set train.steps=6
  expect_exit 0 "$fourfold" train run.toml --set log.dir=board --set train.steps=8
  expect "$FOURFOLD_TEST_PYTHON" -c 'from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator("board")
events.Reload()
steps = [event.step for event in events.Scalars("train/loss")]
assert steps == list(range(1, 9)), steps'
fi
expectations_met
