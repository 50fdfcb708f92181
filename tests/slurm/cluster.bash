# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For tests on a real Slurm of several nodes: source it after expect.bash, then `begin_cluster BUILD_DIR NODES`. The nodes
# are processes of this machine (test_cluster.bash), the daemons Debian's own.

tests_slurm=$(dirname -- "${BASH_SOURCE[0]}")
# shellcheck source=tests/integration/expect.bash
. "$tests_slurm/../integration/expect.bash"

# begin_cluster BUILD_DIR NODES: as begin, with a cluster of its own, that goes when the script ends. Leaves the script with
# 77 (skipped) where no Slurm can be started. "$slurm" is the folder of the batch scripts.
begin_cluster() {
  [[ $EUID -eq 0 ]] || { echo "slurmd and its nodes need root" && exit 77; }
  for program in munged slurmctld slurmd srun; do
    command -v "$program" >/dev/null || { echo "there is no $program here" && exit 77; }
  done
  tests_slurm=$(readlink -f -- "$tests_slurm")
  begin "$1"
  chmod 755 "$work"  # munged lets anybody ask it, or nobody
  export TEST_CLUSTER_DIR=$work/cluster
  # What is looked at after a failure: the daemons' words.
  trap 'cluster_end' EXIT
  cluster up "$2" >"$output" 2>"$errors" || { cat "$errors" && exit 1; }
  eval "$(cluster env)"
  # shellcheck disable=SC2034  # for the scripts that source this
  slurm=$1/share/fourfold/slurm
  export FOURFOLD_MPI=pmi2
  PATH=$1/bin:$PATH
}

cluster() { "$tests_slurm/test_cluster.bash" "$@"; }

cluster_end() {
  [[ $BASHPID == "$$" ]] || return 0 # as clear_away
  [[ $broken -eq 0 ]] || cluster logs 25
  cluster down >/dev/null 2>&1
  clear_away
}

# on_node NUMBER COMMAND...: with the files that are to be seen there.
on_node() {
  local node=$1
  shift
  nsenter --mount --target "$(<"$TEST_CLUSTER_DIR/run/slurmd.node$node.pid")" "$@"
}

# state_of JOB: PENDING, RUNNING, COMPLETED, FAILED, TIMEOUT, ...
state_of() { scontrol show job "$1" 2>/dev/null | sed -n 's/^ *JobState=\([A-Z_]*\).*/\1/p' | tail -n 1; }

# exit_of JOB: the exit code of its batch script.
exit_of() { scontrol show job "$1" | sed -n 's/.* ExitCode=\([0-9]*\):.*/\1/p' | tail -n 1; }

# until_holds SECONDS COMMAND...: polls.
until_holds() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [[ $SECONDS -lt $deadline ]] || return 1
    sleep 0.2
  done
}

# all_are_idle NODES: so many, and no other.
all_are_idle() { [[ $(sinfo --noheader --states=idle --partition=test --format=%D) == "$1" ]]; }

# no_jobs_of NAME: none waits, runs or ends.
no_jobs_of() { [[ -z $(squeue --noheader --name="$1") ]]; }
is_over() { [[ $(state_of "$1") =~ ^(COMPLETED|FAILED|TIMEOUT|CANCELLED|NODE_FAIL|PREEMPTED|BOOT_FAIL|DEADLINE|OUT_OF_MEMORY)$ ]]; }
is_running() { [[ $(state_of "$1") == RUNNING ]]; }

# expect_job JOB SECONDS STATE [EXIT_CODE]: it is over by then, in that state.
expect_job() {
  local state code
  until_holds "$2" is_over "$1" || complain "job $1 is not over after $2 s but $(state_of "$1")"
  state=$(state_of "$1") code=$(exit_of "$1")
  [[ $state == "$3" && (-z ${4-} || $code == "$4") ]] ||
    complain "job $1 ended $state with code $code, not $3${4:+ with $4}; its log: $(tail -n 30 ./*-"$1".log ./*/*-"$1".log 2>/dev/null)"
}

# A tiny corpus and run file: tokens_train, tokens_val and run.toml here.
write_run() {
  prepare_text 300 --validation-fraction 0.1
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
[optim]
lr = 1e-2
schedule = "constant"
[data]
train = ["tokens_train"]
[checkpoint]
every_steps = 4
[log]
dir = "run"
progress = "plain"
END
}

# write_greedy: a script ./greedy in place of fourfold, whose rank 1 takes 600 MB beside it after two seconds of training; that task
# ends with the process that took them.
write_greedy() {
  cat >greedy <<END
#!/bin/bash
"$fourfold" "\$@" &
[[ \$1 == train && \$SLURM_PROCID == 1 ]] || { wait %1; exit; }
python3 -c 'import time
time.sleep(2)
taken = []
for _ in range(60):
    taken.append(bytearray(b"x" * 10_000_000))
    time.sleep(0.05)
time.sleep(20)'
code=\$?
kill -KILL %1
exit \$code
END
  chmod +x greedy
}

# losses FILE: "step loss" of every step of a metrics.jsonl as the run ended up with it: what a restart made again counts once.
losses() {
  python3 -c 'import json, sys
last = {}
for line in open(sys.argv[1]):
    record = json.loads(line)
    if record["event"] in ("start", "resume"):
        last = {step: loss for step, loss in last.items() if step <= record["from_step"]}
    if record["event"] == "step":
        last[record["step"]] = record["loss"]
for step in sorted(last):
    print(step, repr(last[step]))' "$1"
}
# expect_near CALM FILE STEPS: losses, as losses() prints them, of so many steps; they differ by the order of sums at most.
expect_near() {
  expect python3 -c 'import sys
calm, own = ([float(line.split()[1]) for line in open(name)] for name in sys.argv[1:3])
assert len(calm) == len(own) == int(sys.argv[3]), (len(calm), len(own))
assert all(abs(a - b) < 1e-3 * a for a, b in zip(calm, own)), [a - b for a, b in zip(calm, own)]' "$@"
}
# steps_made FILE: how many steps were computed, those of every start.
steps_made() { grep -c '"event":"step"' "$1"; }
# has_steps DIR N: the run in DIR has made so many.
has_steps() { [[ $(steps_made "$1/metrics.jsonl" 2>/dev/null || echo 0) -ge $2 ]]; }
# has_begun DIR N: so many batch jobs, or restarts of one, have begun with it.
has_begun() { [[ $(grep -c '"event":"begin"' "$1/attempts.jsonl" 2>/dev/null) -eq $2 ]]; }

# ranks_of JOB [NUMBER]: the processes of its ranks, or of one.
ranks_of() {
  local process
  for process in $(pgrep --full fourfold-train); do
    { tr '\0' '\n' <"/proc/$process/environ" | grep -cxE "SLURM_CONF=$SLURM_CONF|SLURM_JOB_ID=$1|SLURM_PROCID=${2:-[0-9]+}" | grep -qx 3; } 2>/dev/null &&
      echo "$process"
  done
}
