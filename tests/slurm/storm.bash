#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# A storm of events over chains of jobs, on a real Slurm with accounts: signals, kills, nodes and daemons that go and come back, a closed
# partition, edited run files (storm.py). Chains finish, or end for a reason that their events explain; losses are those of a run that
# nothing happened to, bit for bit. Usage: storm.bash BUILD_DIR [EVENTS [CHAINS [SEED]]]
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
export TEST_CLUSTER_ACCOUNTING=1
begin_cluster "$1" 4
write_run
seed=${4:-$(date +%s)}
echo "seed $seed"
segments() { find /dev/shm -mindepth 1 2>/dev/null | sort; }
segments >segments.txt
sed -i 's/^steps = 8/steps = 1000/; s/^global_batch = 8/global_batch = 64/; s/^every_steps = 4/every_steps = 40/; s/^\[data\]/[mesh]\ndp = 2\n[watchdog]\nsilence_s = 4\nstart_s = 10\n[data]/' run.toml
# So many steps that a run lasts for three jobs or more of those that the events leave of it, however fast this machine is.
calm_s=24
expect_exit 0 ranks 2 train run.toml --set log.dir=timed
steps=$(python3 -c 'import json, sys
times = [one["time"] for one in map(json.loads, open("timed/metrics.jsonl")) if one["event"] == "step"]
print(40 * max(25, round(float(sys.argv[1]) * (len(times) - 1) / (times[-1] - times[0]) / 40)))' "$calm_s")
echo "steps $steps"
sed -i "s/^steps = .*/steps = $steps/" run.toml
expect_exit 0 ranks 2 train run.toml --set log.dir=calm
export FOURFOLD_SETTLE_S=3 FOURFOLD_ASK_S=10 FOURFOLD_ASK_AGAIN_S=15
code=0
python3 "$tests_slurm/storm.py" "$fourfold" "$tests_slurm/test_cluster.bash" "$seed" "${2:-40}" "${3:-6}" || code=$?
[[ $code -eq 0 ]] || complain "storm.py ended with code $code"
[[ -z ${STORM_KEEP-} ]] || cp -a . "$STORM_KEEP"
# Nothing of it is left.
no_ranks() { ! pgrep --full 'fourfold-train.*chain[0-9]' >/dev/null; }
until_holds 60 no_ranks || complain "processes are left: $(pgrep --full --list-full 'fourfold-train.*chain[0-9]')"
segments | comm -13 segments.txt - >left.txt
expect test ! -s left.txt
for run in chain??; do
  # A chain that Slurm forgot before it began has none.
  [[ ! -e $run/attempts.jsonl ]] || expect_exit 0 "$fourfold" ckpt verify --deep "$run/checkpoints"
  left=$(find "$run" \( -name '.*tmp-*' -o -name '.lease*' -o -name '.run-lease*' -o -name '.start*' \) | head -n 5)
  # A run that has not finished leaves its lease to the next start.
  [[ -z $left || ! -e $run/FINISHED ]] || complain "left in $run: $left"
done
expectations_met
