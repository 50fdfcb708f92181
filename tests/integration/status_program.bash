#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# fourfold status and watch: a run that is killed, goes on, is stopped and finishes, looked at meanwhile and afterwards; and
# directories that nobody would want to find. Usage: status_program.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
here=$SOURCE_DIR/tests/integration
begin "$1"
export TZ=UTC

prepare_text 200
cat >run.toml <<'END2'
[model]
layers = 1
hidden = 32
heads = 2
vocab = 257
context = 32
[train]
global_batch = 4
micro_batch = 2
steps = 100000000 # more than a job of an hour can make
eval_every_steps = 50
eval_batches = 1
[optim]
schedule = "constant"
[data]
train = ["tokens"]
validation = ["tokens"]
[checkpoint]
every_steps = 100
[log]
dir = "runs/a"
peak_tflops = 0.01
END2

# sees EXPRESSION: holds of the run in status --json, called `run`; `t` is the time of the look.
sees() {
  "$fourfold" status runs/a --json >"$output" 2>"$errors" || complain "status failed"
  python3 -c 'import json, sys
document = json.load(open(sys.argv[1]))
run, t = document["runs"][0], document["time"]
assert eval(sys.argv[2]), run' "$output" "$1" 2>>"$errors" || complain "does not hold: $1"
}
# until_has SECONDS FILE PATTERN COUNT: so many lines are in the file.
until_has() {
  local deadline=$((SECONDS + $1))
  until [[ $(grep -c -- "$3" "$2" 2>/dev/null) -ge $4 ]]; do
    [[ $SECONDS -lt $deadline ]] || { complain "no $4 times '$3' in $2 after $1 s" && return; }
    sleep 0.05
  done
}

# until_sees SECONDS EXPRESSION: it comes to hold within that time.
until_sees() {
  local deadline=$((SECONDS + $1))
  until "$fourfold" status runs/a --json >"$output" 2>"$errors" && python3 -c 'import json, sys
document = json.load(open(sys.argv[1]))
run, t = document["runs"][0], document["time"]
sys.exit(not eval(sys.argv[2]))' "$output" "$2" 2>>"$errors"; do
    [[ $SECONDS -lt $deadline ]] || { complain "does not hold after $1 s: $2" && return; }
    sleep 0.1
  done
}

# Before anything has started.
expect_exit 0 "$fourfold" status run.toml
expect_stdout "runs/a: nothing has started here yet"
expect test ! -e runs
expect_exit 78 "$fourfold" status runs/a
expect_stderr "cannot look at the run runs/a (No such file or directory); name the directory"
expect_exit 64 "$fourfold" status

# A job of an hour that has begun an instant ago.
export SLURM_JOB_ID=41 SLURM_JOB_NUM_NODES=3
FOURFOLD_DEADLINE=$(($(date +%s) + 3600))
export FOURFOLD_DEADLINE
expect_exit 0 "$fourfold" job begin run.toml
expect_exit 0 "$fourfold" status runs/a
expect_stdout "runs/a: starting"
"$fourfold" train run.toml --progress none >train.log 2>&1 &
trainer=$!
until_has 60 runs/a/metrics.jsonl '"event":"checkpoint"' 2
until_sees 120 'run["step"] >= 200 and run["in_time"] is not None and t - run["updated"] < 3' # it is written every 5 s
expect_exit 0 "$fourfold" status run.toml
for text in "runs/a: running" "of 100000000 (0." "validation " " tokens/s, " " a step, MFU " "checkpoint   step " "goes on"; do
  expect_stdout "$text"
done
expect_stdout "; the job ends in "
expect_stdout " more jobs of this length"
sees 'run["state"] == "running" and run["code"] is None and run["steps"] == 10**8'
sees '200 <= run["step"] < 10**8 and 0 < run["loss"] < 10 and run["tokens_per_s"] > 0'
# 6N + 6LhT with N = 12 x 32 x 32 + 257 x 32, L = 1, h = 32, T = 32, on one rank.
sees 'abs(run["mfu"] - run["tokens_per_s"] * 129216 / 1e10) < 1e-9'
expect_exit 0 "$fourfold" train run.toml --dry-run
expect_stderr "MFU counts 6N + 6LhT = 0.0001292 GFLOP per token against 0.01 TFLOP/s a rank"
sees 'abs(run["deadline"] - t - 3600) < 60 and run["remaining_s"] > 0'
# Somebody has moved its end; another job's says nothing.
echo "40 0 $((FOURFOLD_DEADLINE + 7200))" >runs/a/.job-end
sees 'abs(run["deadline"] - t - 3600) < 60'
echo "41 0 $((FOURFOLD_DEADLINE + 7200))" >runs/a/.job-end
sees 'abs(run["deadline"] - t - 3 * 3600) < 60'
rm runs/a/.job-end
sees 'run["in_time"] is False and run["more_jobs"] == -(-(t + run["remaining_s"] - run["deadline"]) // (run["deadline"] - run["attempts"][0]["began"]))'
sees 'run["checkpoint"].endswith("step-%09d" % run["checkpoint_step"]) and 0 <= t - run["checkpoint_time"] < 60'
sees 'abs(run["node_hours_used"] - 3 * (t - run["attempts"][0]["began"]) / 3600) < 1e-9 and run["node_hours_lost"] == 0'
sees '[(one["job"], one["nodes"], one["ended"]) for one in run["attempts"]] == [("41", 3, False)]'
# Two who watch, on a terminal and off it, until it is over; one that is told to stop by Ctrl-C.
"$fourfold" watch runs/a --interval 0.2 >watched.txt 2>&1 &
watcher=$!
TERM=xterm python3 "$here/on_terminal.py" watch "" "$fourfold" watch runs/a --interval 0.2 >drawn.txt 2>&1 &
drawer=$!
expect_exit 130 python3 "$here/on_terminal.py" watch $'\x03' "$fourfold" watch runs/a --interval 0.2
expect kill -0 "$trainer"

# Killed without a word; the batch script notes it.
sleep 1
# Not between a step and its line in metrics.jsonl, from whose time the lost hours are counted below; and not before another step
# is made, which is lost.
newest_is_noted() {
  local newest made
  newest=$(find runs/a/checkpoints -maxdepth 1 -name 'step-*' -printf '%f\n' | sort | tail -n 1)
  made=$(grep -o '"event":"step","time":[^,]*,"step":[0-9]*' runs/a/metrics.jsonl | tail -n 1)
  [[ ${made##*:} -gt $((10#${newest#step-})) ]] && grep -qE "\"event\":\"checkpoint\".*\"step\":$((10#${newest#step-}))[,}]" runs/a/metrics.jsonl
}
kill -STOP "$trainer"
until newest_is_noted; do
  kill -CONT "$trainer"
  sleep 0.05
  kill -STOP "$trainer"
done
kill -9 "$trainer"
wait "$trainer" 2>/dev/null
expect_exit 85 "$fourfold" job end run.toml --launcher-code 137
wait "$watcher"
[[ $? -eq 85 ]] || complain "watch did not end with 85: $(cat watched.txt)"
expect grep -q "runs/a: running, step " watched.txt
expect grep -q "runs/a: failed (code 85)" watched.txt
wait "$drawer"
[[ $? -eq 85 ]] || complain "watch on a terminal did not end with 85: $(cat drawn.txt)"
expect grep -q "^runs/a: failed (code 85)" drawn.txt
expect_exit 0 "$fourfold" status runs/a
expect_stdout "runs/a: failed (code 85)"
expect_stdout "reason       killed without a word (the launcher ended with code 137; whether for memory, no accounts say)"
expect_stdout "next         start it again (a chain does): it goes on from the checkpoint"
sees 'run["state"] == "failed" and run["code"] == 85 and run["retry"] and run["in_time"] is None'
sees 'run["node_hours_lost"] > 0'

# Gone on with by the next job, and stopped.
export SLURM_JOB_ID=42
expect_exit 0 "$fourfold" job begin run.toml
"$fourfold" train run.toml --progress none >>train.log 2>&1 &
trainer=$!
until_has 60 runs/a/metrics.jsonl '"event":"resume"' 1
sleep 2
kill -USR2 "$trainer"
wait "$trainer"
expect_exit 75 "$fourfold" job end run.toml --launcher-code 75
expect_exit 0 "$fourfold" status runs/a
expect_stdout "runs/a: stopped (code 75)"
sees 'run["state"] == "stopped" and run["retry"] and run["checkpoint_step"] == run["step"] and run["more_jobs"] is not None'
expect_exit 75 "$fourfold" watch runs/a
expect_exit 124 timeout 1 "$fourfold" watch runs/a --chain --interval 0.1
# A chain without another job is over, and one whose next job was refused.
cp runs/a/attempts.jsonl as_it_was.jsonl
for last in '{"event":"end","time":TIME,"job":"42","restart":0,"code":75,"reason":"saved","step":STEP,"retry":true,"no_next":"the last of the 2"}' \
  '{"event":"end","time":TIME,"job":"42","restart":0,"code":75,"reason":"saved","step":STEP,"retry":true,"next":"43"}
{"event":"refused","time":LATER,"job":"43","restart":0,"code":93,"reason":"got no further"}'; do
  last=${last//TIME/$(date +%s)} last=${last//LATER/$(($(date +%s) + 1))}
  printf '%s\n' "${last//STEP/$(sed -n 's/^  "step": \([0-9]*\),$/\1/p' runs/a/exit.json)}" >>runs/a/attempts.jsonl
  expect_exit 75 timeout 20 "$fourfold" watch runs/a --chain --interval 0.1
  expect_exit 0 "$fourfold" status runs/a
  expect_stdout "next         no job of the chain goes on with it"
  [[ $last != *refused* ]] || expect_stdout "see to why its next one was refused, then submit it again"
  cp as_it_was.jsonl runs/a/attempts.jsonl
done
# One that a STOP file has ended, which is gone.
printf '{"event":"end","time":%s,"job":"42","restart":0,"code":75,"reason":"saved and stopped: STOP file","step":%s,"retry":false}\n' "$(date +%s)" \
  "$(sed -n 's/^  "step": \([0-9]*\),$/\1/p' runs/a/exit.json)" >>runs/a/attempts.jsonl
expect_exit 0 "$fourfold" status runs/a
expect_stdout "next         start it again: it goes on from the checkpoint"
cp as_it_was.jsonl runs/a/attempts.jsonl
touch runs/a/STOP
expect_exit 0 "$fourfold" status runs/a
expect_stdout "files        STOP"
expect_stdout "next         remove STOP, then start it again"
rm runs/a/STOP

# Finished by a start without a job; what all that cost, by the files themselves.
unset SLURM_JOB_ID SLURM_JOB_NUM_NODES FOURFOLD_DEADLINE
step=$(sed -n 's/^  "step": \([0-9]*\),$/\1/p' runs/a/exit.json)
expect_exit 0 "$fourfold" train run.toml --progress none --set train.steps=$((step + 30))
expect_exit 0 "$fourfold" status runs/a
expect_stdout "runs/a: finished"
expect_stdout "(100.0%)"
expect_stdout "FINISHED"
expect_exit 0 "$fourfold" watch runs/a
sees '[one["job"] for one in run["attempts"]] == ["41", "42", None]'
sees '[one["code"] for one in run["attempts"]] == [85, 75, 0]'
sees 'run["attempts"][1]["to_step"] == run["attempts"][2]["from_step"] == run["step"] - 30 and run["remaining_s"] is None'
expect python3 - "$output" <<'END2'
import json
import sys

run = json.load(open(sys.argv[1]))["runs"][0]
metrics = [json.loads(line) for line in open("runs/a/metrics.jsonl")]
jobs = [json.loads(line) for line in open("runs/a/attempts.jsonl")]
killed, stopped = jobs[1]["time"] - jobs[0]["time"], jobs[3]["time"] - jobs[2]["time"]
last = [line["time"] for line in metrics if line["event"] in ("resume", "end")][-2:]
assert abs(run["node_hours_used"] * 3600 - (3 * killed + 3 * stopped + last[1] - last[0])) < 1e-3
resumed = [line["from_step"] for line in metrics if line["event"] == "resume"][0]
saved = [line["time"] for line in metrics if line["event"] == "checkpoint" and line["step"] == resumed][0]
assert abs(run["node_hours_lost"] * 3600 - 3 * (jobs[1]["time"] - saved)) < 1e-3
END2

# Several at once, and one that is none.
cp -r runs/a runs/b
expect_exit 0 "$fourfold" status --short runs/a ./runs/b/ runs/a "$PWD/runs/../runs/b"
expect test "$(wc -l <"$output")" -eq 2
expect_exit 0 "$fourfold" status --short runs # the folder that they lie in
expect test "$(cut -d : -f 1 "$output" | tr '\n' ' ')" = 'runs/a runs/b '
expect_exit 78 "$fourfold" status --short runs/a absent
expect_stdout "runs/a: finished"
expect_stderr "absent"

# Prometheus, with a name that needs care.
odd=$'runs/o"d\\d\nq\xff'
cp -r runs/a "$odd"
expect_exit 0 "$fourfold" status runs/a "$odd" run.toml --prometheus metrics.prom
expect test ! -s "$output"
expect_exit 0 python3 "$here/prometheus_grammar.py" metrics.prom
expect python3 - "$output" "$step" <<'END2'
import json
import os
import sys

samples = json.load(open(sys.argv[1]))
value = {(name, labels.get("state")): sample for name, labels, sample in samples
         if labels["run"] == os.path.realpath("runs/a")}
assert value["fourfold_run_state", "finished"] == 1 and value["fourfold_run_state", "running"] == 0
assert value["fourfold_run_step", None] == int(sys.argv[2]) + 30
assert value["fourfold_run_lost_node_seconds", None] > 0
assert len({labels["run"] for _, labels, _ in samples}) == 2
END2
expect_exit 73 "$fourfold" status runs/a --prometheus absent/metrics.prom
echo mine >notes
expect_exit 78 "$fourfold" status runs/a --prometheus notes
expect_stderr 'notes: is there already, and not made by'
expect test "$(cat notes)" = mine
expect_exit 0 "$fourfold" status "$odd" --json
expect python3 -m json.tool "$output"
expect_exit 0 "$fourfold" status "$odd"
expect_stdout 'runs/o"d\d\u000aq\xff: finished'

# Nothing in the directory is touched, and reading is all that is needed: root without its rights over files, too.
listing() { find runs/a -printf '%p %i %s %T@ %C@ %m\n' | sort; }
listing >before.txt
chmod -R a-w runs/b
as_reader=()
[[ $EUID -ne 0 ]] || as_reader=(setpriv "--bounding-set=-dac_override,-dac_read_search")
for program in status watch; do
  expect_exit 0 "$fourfold" "$program" runs/a
  expect_exit 0 "${as_reader[@]}" "$fourfold" "$program" runs/b
done
chmod -R u+w runs/b
listing >after.txt
expect cmp before.txt after.txt

rm -rf runs/a/checkpoints # not looked into, and slow to copy
# Files that are cut off, rubbish or no files. Nothing waits.
kept=()
for file in status.json exit.json attempts.jsonl metrics.jsonl FINISHED hang.json STOP SAVE; do
  for kind in half rubbish escape fifo directory none; do
    rm -rf runs/c && cp -r runs/a runs/c && rm -f "runs/c/$file"
    case $kind in
      half) head -c "$(($(stat -c %s "runs/a/$file" 2>/dev/null || echo 2) / 2))" "runs/a/$file" >"runs/c/$file" 2>/dev/null ;;
      rubbish) head -c 100000 /dev/urandom >"runs/c/$file" ;;
      escape) printf '{"code":65,"reason":"\\u001b[2J\\u0007","step":1,"checkpoint":"","bad_nodes":[],"retry":false,"updated":1e9,"checkpoint_step":-5}' >"runs/c/$file" ;;
      fifo) mkfifo "runs/c/$file" ;;
      directory) mkdir "runs/c/$file" ;;
      none) ;;
    esac
    expect_exit 0 timeout 20 "$fourfold" status runs/c
    ! grep -q $'[\x1b\x07]' "$output" || complain "$file, $kind: control characters are printed"
    kept+=("runs/c-$file-$kind") && mv runs/c "${kept[-1]}"
  done
done
expect_exit 0 timeout 60 "$fourfold" status "${kept[@]}" --json --prometheus metrics.prom
expect python3 -c 'import json, sys
assert len(json.load(open(sys.argv[1]))["runs"]) == 48' "$output"
expect python3 "$here/prometheus_grammar.py" metrics.prom
expect_exit 78 timeout 20 "$fourfold" status text.txt
mkfifo pipe.toml
expect_exit 78 timeout 20 "$fourfold" status pipe.toml
expect_exit 78 timeout 20 "$fourfold" watch pipe.toml

# A folder of runs: what is passed over is said, and hides no run.
mkdir -p many/alien many/.hidden many/steps/checkpoints && cp -r runs/a many/one && touch many/notes.txt && ln -s nowhere many/gone
mkdir many/told && cp runs/a/status.json many/told/
expect_exit 0 "$fourfold" status many --short
expect_stdout 'many/one' && expect_stdout 'many/told'
expect_stderr 'passed over many/alien: has no file that a run leaves in its log.dir'
expect_stderr 'passed over many/gone: leads nowhere'
expect test "$(grep -c 'passed over' "$errors")" -eq 3
if [[ $EUID -eq 0 ]] && command -v setpriv >/dev/null; then
  chmod 755 . && cp -r runs/a many/private && chmod -R go-rwx many/private
  user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  if "${user[@]}" test -x "$fourfold"; then
    expect_exit 0 "${user[@]}" "$fourfold" status many --short
    expect_stdout 'many/one'
    expect_stderr 'passed over many/private: cannot be looked into (Permission denied)'
    expect_exit 78 "${user[@]}" "$fourfold" status many/private
    expect_stderr 'many/private: cannot be looked into (Permission denied)'
  fi
fi
# A link to where another program looks stays one.
mkdir far && expect_exit 0 "$fourfold" status runs/a --prometheus far/a.prom
ln -s far/a.prom near.prom && : >far/a.prom
expect_exit 0 "$fourfold" status runs/a --prometheus near.prom
expect test -L near.prom && expect test -s far/a.prom

# On a login node: no MPI, no HDF5.
for program in "$(dirname "$fourfold")"/fourfold-{status,watch}; do
  expect_exit 0 ldd "$program"
  expect_no_stdout mpi
  expect_no_stdout hdf5
done
expectations_met
