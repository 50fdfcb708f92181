#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# A run whose watch's port anybody can reach goes on, whatever strangers send there: no rank is taken for dead, and a stop by a
# signal still saves. Usage: watch_port.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
strangers=$(readlink -f -- "$(dirname "$0")")/strangers.py
begin "$1"

prepare_text 50
printf '[model]\nlayers = 1\nhidden = 32\nheads = 2\nvocab = 257\ncontext = 32\n[train]\nglobal_batch = 4\nmicro_batch = 1\nsteps = 1000000
[data]\ntrain = ["tokens"]\n[watchdog]\nsilence_s = 12\n[log]\ndir = "run"\n' >run.toml
ranks 2 train run.toml --progress none >train.log 2>&1 &
run=$!
makes_steps() { grep -qs '"step":20,' run/metrics.jsonl; }
for _ in $(seq 600); do
  { makes_steps || ! kill -0 "$run"; } && break
  sleep 0.1
done
makes_steps || { complain "it does not train: $(tail -n 5 train.log)"; expectations_met; exit; }
# pgrep knows a process by the first 15 characters of its name.
mapfile -t processes < <(for one in $(pgrep fourfold-train); do [[ $(readlink "/proc/$one/cwd") != "$work" ]] || echo "$one"; done)
expect test "${#processes[@]}" -eq 2
expect_exit 0 timeout 120 python3 "$strangers" 20 "${processes[@]}"
expect_stdout '2 ports'
expect kill -0 "$run"
for one in "${processes[@]}"; do kill -USR2 "$one" 2>/dev/null; done
code=0
wait "$run" || code=$?
[[ $code -eq 75 ]] || complain "the run ended with $code: $(tail -n 5 train.log)"
expect test ! -e run/hang.json
expect test "$(grep -c 'no sign of life' train.log)" -eq 0
expectations_met
