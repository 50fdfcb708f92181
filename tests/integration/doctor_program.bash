#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# fourfold doctor as users meet it: on one rank and several, with a run file and without, and what it refuses. How fast
# anything is, is not looked at: ranks share cores here, and then stand out by chance. Usage: doctor_program.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
# shellcheck source=tests/integration/other_build.bash
. "$(dirname "$0")/other_build.bash"
begin "$1"

# expect_diagnosed COMMAND...: it ends with 0, or names a node that stood out by chance, but finds nothing that a run would fail of.
expect_diagnosed() {
  local code=0
  "$@" >"$output" 2>"$errors" </dev/null || code=$?
  [[ $code -eq 0 || $code -eq 85 ]] || complain "exit code $code from: $*"
  ! grep -E '^[a-z].* FAIL ' "$output" | grep -vE '^(products|memory speed|transport|network)' || complain "something fails"
}
expect_empty() { [[ -z $(ls -A "$1") ]] || complain "$1 holds $(ls -A "$1")"; }

expect_exit 0 "$fourfold" doctor --help
for section in "WHAT IT LOOKS AT" OUTPUT EXAMPLES "EXIT CODES"; do
  expect_stdout "$section"
done

# One rank, no launcher, no run file.
mkdir probed
expect_exit 0 "$fourfold" doctor --dir probed --seconds 10
expect_stdout "1 rank on 1 node"
expect_stdout "no GPUs here"
expect_stdout "one rank: nothing is sent"
expect grep -qE '^--dir +ok +probed, write [0-9]+ MB/s, read [0-9]+ MB/s, .* free' "$output"
expect grep -qx 'exclude:' "$output"
expect_stderr "products and memory bandwidth of all ranks"
expect_empty probed

# The driver of GPUs is asked; here one of them has lost memory.
mkdir driver
cat >driver/nvidia-smi <<'END'
#!/bin/sh
case $* in
  *temperature.gpu*) echo 'GPU-aa, 0, NVIDIA A100, 535.104.05, 31, 4, 40960' ;;
  *ecc.errors*) echo 'GPU-aa, 3' ;;
  *) echo 'Field is not a valid field to query.' && exit 2 ;;
esac
END
chmod 755 driver/nvidia-smi
expect_exit 85 env PATH="$PWD/driver:$PATH" "$fourfold" doctor --seconds 8
expect_stdout 'has had 3 memory errors that ECC did not correct'
expect grep -qE '^exclude: --exclude=.' "$output"

# Several, odd numbers among them, as one group; what is measured is in the JSON. All of them share cores or have them.
for n in 1 2 3 4; do
  begun=$SECONDS
  expect_diagnosed ranks "$n" doctor --dir probed --seconds 12 --json
  [[ $((SECONDS - begun)) -le 60 ]] || complain "$n ranks took $((SECONDS - begun)) s"
  expect python3 -c 'import json, sys
n, found = int(sys.argv[1]), json.load(open(sys.argv[2]))
assert list(found) == ["version", "seconds", "mesh", "exit_code", "exclude", "checks", "ranks", "nodes", "groups", "directories"]
assert [each["rank"] for each in found["ranks"]] == list(range(n)) and len(found["nodes"]) == 1
assert all(each["products_gflops"] > 0 and each["triad_gb_s"] > 0 and each["memory_bytes"] > 0 for each in found["ranks"])
groups = [(each["axis"], each["ranks"]) for each in found["groups"]]
assert groups == ([] if n == 1 else [("world", list(range(n)))]), groups
assert all(each["wrong_elements"] == 0 and each["latency_us"] > 0 for each in found["groups"])
[directory] = found["directories"]
[node] = directory["nodes"]
assert directory["key"] == "--dir" and node["problem"] == "" and node["bytes"] >= 1 << 20 and node["sees_first"]
assert found["nodes"][0]["gpus"] == []
assert all(check["status"] in ("ok", "warning", "FAIL") for check in found["checks"])' "$n" "$output"
done
expect_empty probed

# With a run file: its mesh, its memory, its directories, which it does not make.
prepare_text 300
cat >run.toml <<'END'
[model]
layers = 2
hidden = 32
heads = 2
vocab = 257
context = 32
[train]
global_batch = 8
micro_batch = 1
steps = 8
[data]
train = ["tokens"]
[checkpoint]
every_steps = 4
node_local_dir = "fast"
node_local_every_steps = 1
[log]
dir = "run"
END
expect_diagnosed ranks 4 doctor run.toml --set mesh.tp=2 --set mesh.pp=2 --seconds 15 --dir probed
expect_stdout "pp2 dp1 cp1 tp2; neighbours on tp share a node"
expect_stdout "2 groups at once of 2"
for row in "transport tp" "transport pp" checkpoint.dir log.dir data.train checkpoint.node_local_dir --dir; do
  expect grep -qE "^$row +(ok|warning|FAIL) " "$output"
done
expect grep -qE 'whose 4 rank\(s\) need [0-9]' "$output"
expect grep -qE '^checkpoint.dir .*\(for run/checkpoints, which is not there yet\)' "$output"
expect test ! -e run
expect test ! -e fast

# In a batch job the mesh is the one with which `job begin` starts it: mesh.dp = "auto" may leave ranks over.
SLURM_JOB_NUM_NODES=3 expect_diagnosed ranks 3 doctor run.toml --set mesh.dp=auto --seconds 10
expect_stdout 'pp1 dp2 cp1 tp1; neighbours on tp there are none; 1 of 3 ranks are not used'
expect_exit 78 ranks 3 doctor run.toml --set mesh.dp=3 --seconds 10

# Another build of the program on one node: the table says so, and nothing else is believed; no run of any program begins.
for verb in doctor train sample evaluate bench; do expect other_build "$verb"; done
expect_exit 78 "$MPIEXEC" -n 1 "$fourfold" doctor run.toml --seconds 10 : -n 1 ./other-doctor run.toml --seconds 10
expect grep -qE '^versions +FAIL +fourfold ' "$output"
expect grep -qE 'fourfold differs: .* \(f{8}' "$output"
expect_stdout '1 checks in'
expect_stdout 'exit code 78'
expect_exit 78 "$MPIEXEC" -n 1 "$fourfold" doctor --json --seconds 10 : -n 1 ./other-doctor --json --seconds 10
expect python3 -c 'import json, sys; assert [one["status"] for one in json.load(open(sys.argv[1]))["checks"]] == ["FAIL"]' "$output"
expect_exit 78 "$MPIEXEC" -n 1 "$fourfold" train run.toml : -n 1 ./other-train run.toml
expect_stderr 'ranks of one run must be alike'
expect test ! -e run
expect_exit 78 "$MPIEXEC" -n 1 "$fourfold" bench comm : -n 1 ./other-bench comm
expect_stderr 'ranks of one run must be alike'

# What a run would fail of: 78, and all of it in one go.
expect_exit 78 ranks 2 doctor run.toml --set mesh.tp=4 --set data.train=missing --dir nowhere/at/all --seconds 10
expect grep -qE '^mesh +FAIL ' "$output"
expect_stdout "mesh.tp"
expect_no_stdout "--set: --set:"
expect grep -qE '^data.train +FAIL ' "$output"
expect_stdout "missing"
expect_stdout "(for nowhere/at/all, which is not there yet)"
expect_exit 78 "$fourfold" doctor run.toml --set model.layers=200 --set model.hidden=16384 --set model.context=32768 --seconds 10
expect grep -qE '^memory +FAIL ' "$output"
expect_stdout "the run is too large for it"
expect_stdout "exit code 78"
printf 'no directory' >plain_file
expect_exit 78 "$fourfold" doctor --dir plain_file --seconds 10
expect_stdout "plain_file"
[[ -w /proc/version ]] || expect_exit 78 "$fourfold" doctor --dir /proc --seconds 10
(ulimit -n 200 && exec "$fourfold" doctor --seconds 5) >"$output" 2>"$errors" || complain "200 open files end it"
expect grep -qE '^limits +warning ' "$output"
expect_stdout "ulimit -n 4096"

# A run file that is none ends it at once, and so does a wrong word.
expect_exit 78 ranks 2 doctor run.toml --set train.stepz=3
expect_stderr 'did you mean "steps"'
expect_exit 78 "$fourfold" doctor missing.toml
expect_exit 64 "$fourfold" doctor --seconds 0
expect_exit 64 "$fourfold" doctor --set train.steps=3
expect_exit 64 "$fourfold" doctor --fast

# Ended by a signal, it leaves nothing behind.
"$fourfold" doctor --dir probed --seconds 20 >"$output" 2>"$errors" &
doctor=$!
for _ in $(seq 2000); do
  [[ -n $(ls -A probed) ]] && break
  sleep 0.01
done
kill -TERM "$doctor" 2>/dev/null
code=0
wait "$doctor" || code=$?
[[ $code -eq 143 ]] || complain "it ended with $code on SIGTERM"
expect_empty probed

expectations_met
