#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Ways to start a run wrongly, each tried on one that is finished, one that another start is training, and one that was killed:
# the code is as the table says, and no file of the run changes. Usage: wrong_starts.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
# shellcheck source=tests/integration/small_run.bash
. "$(dirname "$0")/small_run.bash"
begin "$1"
unset "${!SLURM_@}" "${!FOURFOLD_@}"

small_run 4 'micro_batch = 2'
printf '%s\n' '[optim]' 'lr = 1e-2' '[checkpoint]' 'every_steps = 2' >>run.toml
head -n 20 text.txt >other.txt
expect_exit 0 "$fourfold" data prepare --output others --append-eot other.txt

# The three runs. The one that was killed left what it was about to write, and its leases.
expect_exit 0 "$fourfold" train run.toml
expect_exit 0 "$fourfold" train run.toml --set log.dir=another --set model.hidden=64 --set model.heads=4
mv run finished
"$fourfold" train run.toml --set train.steps=1000000 --set checkpoint.keep_last=0 --set optim.decay_steps=4 >/dev/null 2>&1 &
trainer=$!
for _ in $(seq 600); do
  grep -qs '"step":20,' run/metrics.jsonl && break
  sleep 0.1
done
kill -KILL "$trainer"
wait "$trainer" 2>/dev/null
expect test -e run/.run-lease
expect test -e run/checkpoints/.lease
# A rank of an earlier start that comes when this one trains leaves nothing in the run that has finished.
"$fourfold" train run.toml --set log.dir=late --set checkpoint.dir=late/checkpoints --set checkpoint.every_steps=0 --set train.steps=2000 \
  --set optim.decay_steps=4 >/dev/null 2>&1 &
trainer=$!
for _ in $(seq 600); do
  ! grep -qs '"step":5,' late/metrics.jsonl || break
  sleep 0.1
done
mkdir late/.start-watch-6-0 && printf 'node1 12\n' >late/.start-watch-6-0/rank-1
wait "$trainer" || complain "the run does not finish"
expect test -e late/FINISHED
expect test ! -e late/.start-watch-6-0
rm -r late
mv run killed
printf '{' >killed/.status.json.tmp-0123456789abcdef
mkdir -p killed/.start-watch-7-0 killed/checkpoints/.tmp-step-000000022-0123456789abcdef
printf 'node1 12\n' >killed/.start-watch-7-0/rank-1
printf 'half' >killed/checkpoints/.tmp-step-000000022-0123456789abcdef/shard-00000-x.h5
printf '{"event":"begin","time":1,"job":"6","restart":0,"chain":"6","nodes":1,"from_step":null}\n' >killed/attempts.jsonl
cp -r killed living
rm living/.run-lease living/checkpoints/.lease
: >in_the_way
cp tokens.idx short.idx && head -c 101 tokens.bin >short.bin
: >empty.bin
printf '[model\n' >broken.toml
# Token files of one size whose numbers the model has no rows for, not even in the first batch.
expect python3 -c '
import pathlib, shutil
shutil.copy("tokens.idx", "beyond.idx")
size = pathlib.Path("tokens.bin").stat().st_size
pathlib.Path("beyond.bin").write_bytes(b"\xff\x7f" * (size // 2))'

# CODE WORD...: a start of the run in the folder run, and the code that it ends with; "late CODE" where that is found only after
# the lease, so that on a run that lives 78 comes first. "@" stands for the program's `train run.toml`.
wrong=(
  '78 @ --set train.step=100'
  '78 @ --set trian.steps=100'
  '78 @ --set train.steps'
  '78 @ --set train.steps=many'
  '78 @ --set train.steps=-1'
  '78 @ --set train.precision=f8'
  '78 @ --set log.progress=loud'
  '64 @ --steps 100'
  '64 @ --set'
  '64 @ more.toml'
  '64 fourfold train'
  '64 fourfold trian run.toml'
  '78 fourfold train absent.toml --set log.dir=run'
  '78 fourfold train broken.toml --set log.dir=run'
  '78 fourfold train tokens.bin --set log.dir=run'
  '78 @ --set train.micro_batch=3'
  '78 @ --set train.global_batch=1000000000'
  '78 @ --set optim.warmup_steps=100'
  '78 @ --set mesh.dp=3'
  '78 @ --set mesh.tp=2'
  '78 @ --set mesh.pp=0'
  '78 ranks3 @'
  '78 env SLURM_STEP_NUM_TASKS=4 @'
  'late 65 @ --set data.train=["beyond"] --set train.steps=900000 --set optim.decay_steps=4 --allow-change=data.train'
  'late 65 ranks2 @ --set data.train=["beyond"] --set train.steps=900000 --set optim.decay_steps=4 --set train.micro_batch=1 --allow-change=data.train'
  'late 65 @ --set data.validation=["beyond"] --set train.steps=900000 --set optim.decay_steps=4'
  'late 65 ranks2 @ --set data.validation=["beyond"] --set train.steps=900000 --set optim.decay_steps=4 --set train.micro_batch=1'
  '78 @ --set data.train=["absent"]'
  '65 @ --set data.train=["short"]'
  '65 @ --set data.train=["empty.bin"]'
  'late 78 @ --set data.train=["others"]'
  'late 78 @ --set data.validation=["absent"]'
  'late 78 @ --set data.tokenizer=absent.json'
  'late 78 @ --set model.vocab=100'
  'late 78 @ --set model.layers=2'
  'late 78 @ --set model.hidden=64'
  'late 78 @ --set model.layers=1000000000'
  'late 78 @ --set optim.lr=0.5'
  'late 78 @ --set optim.schedule=linear'
  'late 78 @ --set train.seed=5'
  'late 78 @ --set train.global_batch=8'
  'late 78 @ --allow-change=optim.lear --set optim.lr=0.5'
  'late 78 @ --allow-change=model.layers --set model.layers=2'
  'late 78 @ --resume=never'
  'late 78 @ --resume=absent/step-000000002'
  'late 78 @ --resume=another/checkpoints/step-000000004'
  'late 78 @ --resume=run/checkpoints/step-000000002'
  'late 78 @ --set checkpoint.weights_only=true'
  'late 78 @ --resume-weights-only=another/checkpoints/step-000000004'
  '78 @ --set checkpoint.dir=in_the_way/checkpoints'
  'late 73 @ --set checkpoint.node_local_dir=in_the_way/fast --set checkpoint.node_local_every_steps=1 --set train.steps=900000 --set optim.decay_steps=4'
  'late 78 @ --set checkpoint.dir=run/chekpoints'
  '78 @ --set log.dir=run/checkpoints'
  '78 @ --set log.dir=run/checkpoints --set checkpoint.dir=elsewhere'
  'late 78 @ --set checkpoint.dir=elsewhere --set train.steps=8'
  'late 78 @ --set checkpoint.dir=elsewhere --set checkpoint.resume=never'
  'late 78 @ --set checkpoint.dir=elsewhere --resume-weights-only=another/checkpoints/step-000000004'
  'late 78 @ --set checkpoint.node_local_dir=run/fast --set checkpoint.node_local_every_steps=1 --set optim.lr=0.5'
  'late 65 @ --set checkpoint.node_local_dir=run/fast/deep --set checkpoint.node_local_every_steps=1 --set data.train=["beyond"] --set train.steps=900000 --set optim.decay_steps=4 --allow-change=data.train'
  'late 78 @ --set checkpoint.node_local_dir=run/checkpoints --set checkpoint.node_local_every_steps=1 --set train.steps=8'
  'late 78 @ --set checkpoint.node_local_dir=run/checkpoints/fast --set checkpoint.node_local_every_steps=1 --set train.steps=8'
  'late 78 @ --set checkpoint.dir=run/checkpoints/step-000000002'
  '78 @ --set log.dir=run/checkpoints/step-000000002'
  'late 78 env FOURFOLD_DEADLINE=soon @'
  'late 78 apart @'
  '78 alone --set train.stepz=100 -- @ --set train.steps=900000 --set train.micro_batch=1'
  '78 alone --set data.train=["absent"] -- @ --set train.steps=900000 --set train.micro_batch=1'
  '65 alone --set data.train=["short"] -- @ --set train.steps=900000 --set train.micro_batch=1'
  '78 there @ --set train.steps=900000 --set train.micro_batch=1'
)
[[ ${#wrong[@]} -ge 40 ]] || complain "only ${#wrong[@]} ways to start wrongly"

ranks2() { "$MPIEXEC" -n 2 "$@"; }
ranks3() { "$MPIEXEC" -n 3 "$@"; }
# Two ranks that were started with different rates.
apart() { "$MPIEXEC" -n 1 "$@" : -n 1 "$@" --set optim.lr=0.1; }

# alone WORD... -- COMMAND...: two ranks, of which the second gets these words, too, and is refused by itself.
alone() {
  local words=()
  while [[ $1 != -- ]]; do words+=("$1") && shift; done
  "$MPIEXEC" -n 1 "${@:2}" : -n 1 "${@:2}" "${words[@]}"
}
# there COMMAND...: the second of two ranks stands in another folder, where it finds no run file.
there() { "$MPIEXEC" -n 1 "$@" : -n 1 -wdir "$PWD/there" "$@"; }
mkdir there

# listing: all that is in the run's folder, each file by what it holds. A lease that somebody counts up is not the same twice.
listing() {
  find run ! -name .run-lease | sort
  find run -type f ! -name .run-lease -exec sha256sum {} + | sort
  [[ $1 == living ]] || cat run/.run-lease 2>/dev/null
}
try_all() { # try_all STATE
  local state=$1 row code late words changed
  listing "$state" >before.txt
  for row in "${wrong[@]}"; do
    read -ra words <<<"$row"
    late=0
    [[ ${words[0]} != late ]] || { late=1 && words=("${words[@]:1}"); }
    code=${words[0]}
    [[ $late == 0 || $state != living ]] || code=78
    words=("${words[@]:1}")
    local command=()
    for word in "${words[@]}"; do
      case $word in
        @) command+=("$fourfold" train run.toml) ;;
        fourfold) command+=("$fourfold") ;;
        *) command+=("$word") ;;
      esac
    done
    expect_exit "$code" "${command[@]}"
    listing "$state" >after.txt
    changed=$(diff before.txt after.txt) || {
      complain "$state: changed by: $row
$changed"
      rm -rf run && cp -r "$state" run
    }
  done
}

for state in finished killed; do
  cp -r "$state" run
  if [[ $state == killed ]]; then  # whose leases are somebody's who stands still: what is wrong shows without taking them
    for lease in run/.run-lease run/checkpoints/.lease; do
      printf 'fourfold-lease 1 0123456789abcdef elsewhere elsewhere 1 - 0 1 -\n' >"$lease"
    done
    for way in optim.lr=0.5 model.head_dim=1000000 checkpoint.dir=elsewhere; do
      expect_exit 78 "$fourfold" train run.toml --set train.steps=900000 --set optim.decay_steps=4 --set "$way"
      grep -q 'watching for' "$errors" && complain "a lease is waited for before $way is refused"
    done
    cp killed/.run-lease run/.run-lease && cp killed/checkpoints/.lease run/checkpoints/.lease
  fi
  try_all "$state"
  rm -rf run
done
cp -r living run
printf 'fourfold-lease 1 0123456789abcdef elsewhere elsewhere 1 - 0 1 -\n' >run/.run-lease
# In one write: a lease that is cut off would be another one.
(for ((count = 2; ; ++count)); do
  sleep 0.3
  printf 'fourfold-lease 1 0123456789abcdef elsewhere elsewhere 1 - 0 %d -\n' "$count" 1<>run/.run-lease
done) &
beats=$!
try_all living
kill "$beats" && wait "$beats" 2>/dev/null
rm -rf run

# A run that is finished and asked for no more: there is nothing to do, and its record stays what it is. One that was killed
# before it could say that it is finished says it now.
cp -r finished run
listing finished >before.txt
for way in 'train.steps=4' 'train.steps=3' 'train.steps=3 --set optim.lr=0.5 --allow-change optim.lr --allow-change optim.decay_steps'; do
  read -ra words <<<"$way"
  expect_exit 0 "$fourfold" train run.toml --set "${words[@]}"
  expect_stderr 'nothing is left to do, and run stays as it is; raise train.steps to train on'
  listing finished >after.txt
  expect diff before.txt after.txt
done
expect_exit 0 ranks 2 train run.toml --set train.micro_batch=1
listing finished >after.txt
expect diff before.txt after.txt
# As a job, with words of which only the start knows what they mean here: nothing was left to do, and it is finished as before.
export SLURM_JOB_ID=70
expect_exit 0 "$fourfold" job begin run.toml --resume=auto
expect_stdout start
expect_exit 0 "$fourfold" train run.toml --resume=auto
expect_exit 0 "$fourfold" job end run.toml --resume=auto --launcher-code 0
expect_stdout finished && expect_stderr 'ended with code 0: the run is finished: nothing was left to do'
expect_exit 0 "$fourfold" status run
expect_stdout 'run: finished'
# A dry run is no start of the run.
cp run/attempts.jsonl before.jsonl
for code in 0 78; do
  expect_exit 0 "$fourfold" job begin run.toml --set train.steps=8 --dry-run
  expect_stdout start
  expect_exit "$code" "$fourfold" job end run.toml --set train.steps=8 --dry-run --launcher-code "$code"
  expect_stdout "$([[ $code -eq 0 ]] && echo finished || echo stop)"
done
expect cmp run/attempts.jsonl before.jsonl
unset SLURM_JOB_ID
rm -r run && cp -r finished run
# One that is to go on, and is stopped before its first new step: taken back at once, or a job with too little time.
for ranks in 1 2; do
  expect_exit 75 env FOURFOLD_DEADLINE=$(($(date +%s) + 20)) mpiexec -n "$ranks" "$fourfold" train run.toml --set checkpoint.margin_s=30 --set train.steps=900000 --set train.micro_batch=1
  expect_stderr 'stopped before the first step: time limit; the run stays finished at step 4, and run stays as it is'
  listing finished >after.txt
  expect diff before.txt after.txt
done
sed -i 's/"code": 0/"code": null/' run/exit.json
rm run/FINISHED
expect_exit 0 "$fourfold" train run.toml
expect test -e run/FINISHED
expect grep -q '"code": 0' run/exit.json
rm -rf run

# Where there was no folder, none is made.
for way in 'train.step=9' 'data.train=["absent"]' 'data.train=["short"]' 'optim.warmup_steps=100' 'model.heads=3'; do
  "$fourfold" train run.toml --set log.dir=new/deep --set "$way" >"$output" 2>"$errors" && complain "$way is taken"
  [[ ! -e new ]] || complain "a folder is made by $way: $(find new)"
  rm -rf new
done

# As a job: a line in attempts.jsonl, and nothing else; a start that is right goes on as if nothing had been.
cp -r finished run
cp -r run before
export SLURM_JOB_ID=71
expect_exit 78 "$fourfold" job begin run.toml --set train.step=9
expect_exit 0 "$fourfold" job begin run.toml --set train.steps=8
expect_exit 78 "$fourfold" train run.toml --set train.steps=8 --set optim.lr=0.5
expect_exit 78 "$fourfold" job end run.toml --launcher-code 137
expect_stdout stop
mv run/attempts.jsonl attempts.jsonl
expect diff -r before run
expect python3 -c 'import json
lines = [json.loads(line) for line in open("attempts.jsonl")]
assert [line["event"] for line in lines] == ["refused", "begin", "refused", "end"], lines
assert all(line["job"] == "71" and line["restart"] == 0 for line in lines), lines
assert [lines[i]["code"] for i in (0, 2, 3)] == [78] * 3 and lines[3]["retry"] is False, lines
assert "unknown key" in lines[0]["reason"] and "optim.lr" in lines[2]["reason"] and lines[2]["reason"] == lines[3]["reason"], lines'
cp attempts.jsonl run
expect_exit 0 "$fourfold" status run
expect_stdout 'run: finished; last start refused: '
expect_stdout '(code 78, job 71, '
expect_exit 0 "$fourfold" status run --json
expect python3 -c 'import json, sys
run = json.load(open(sys.argv[1]))["runs"][0]
assert run["state"] == "finished" and run["code"] == 0, run
assert run["refused"]["code"] == 78 and run["refused"]["job"] == "71" and "optim.lr" in run["refused"]["reason"], run' "$output"
export SLURM_JOB_ID=72
expect_exit 0 "$fourfold" job begin run.toml --set train.steps=8
expect_exit 78 "$fourfold" train run.toml --set train.steps=8 --set optim.lr=0.5
expect_exit 78 "$fourfold" job end run.toml --launcher-code 78
# Corrected, in the same allocation.
expect_exit 0 "$fourfold" job begin run.toml --set train.steps=8
expect_exit 0 "$fourfold" status run
expect_stdout 'run: starting'
expect_exit 0 "$fourfold" train run.toml --set train.steps=8
expect_stderr 'optim.decay_steps: 4 -> 8 (follows train.steps)'
expect_stderr 'the learning rate was 0.001464 at update 4 and is 0.005 at update 5; it comes to optim.min_lr = 0 after update 8'
expect grep -q '"step":5,.*"lr":0.005' run/metrics.jsonl
expect_exit 0 "$fourfold" job end run.toml --launcher-code 0
expect_exit 0 "$fourfold" status run
expect_stdout 'run: finished'
! grep -q refused "$output" || complain 'a refusal is told after a start that was right'
# As a job, it goes on with the next one.
export SLURM_JOB_ID=73
expect_exit 0 "$fourfold" job begin run.toml --set train.steps=12
expect_exit 75 env FOURFOLD_DEADLINE=$(($(date +%s) + 20)) "$fourfold" train run.toml --set checkpoint.margin_s=30 --set train.steps=12
expect_exit 75 "$fourfold" job end run.toml --launcher-code 75
expect_stdout again
expect_stderr 'ended with code 75: stopped before the first step'
expect grep -q '"code": 0' run/exit.json
expect test -e run/FINISHED
# A schedule that is written down stays what it was; that it is over is said.
unset SLURM_JOB_ID
expect_exit 0 "$fourfold" train run.toml --set train.steps=10 --set optim.decay_steps=8
expect_stderr 'the learning rate of all updates from 9 to 10 is 0: they change no weights'
expectations_met
