#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# A rank that is stopped before it comes to MPI_Init: the others, which wait there, name it and end the run. Usage:
# startup_watchdog.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
# shellcheck source=tests/integration/small_run.bash
. "$(dirname "$0")/small_run.bash"
begin "$1"

small_run 2 'micro_batch = 1'

# only_rank RANK COMMAND...: a program that trains, of which that rank does something else before it begins.
only_rank() {
  # shellcheck disable=SC2016  # the wrapper is to expand them
  printf '#!/bin/bash\n[[ $PMI_RANK != %s ]] || %s\nexec %q "$@"\n' "$1" "$2" "$fourfold" >wrapper
  chmod +x wrapper
}
# waits_for RANK RUN OPTION...: a start of four ranks that this one does not come to.
waits_for() {
  local begun=$SECONDS rank=$1 run=$2
  shift 2
  # shellcheck disable=SC2016
  only_rank "$rank" 'kill -STOP $$'
  # What mpiexec makes of the code of a rank that ends by itself is its own affair.
  "$MPIEXEC" -n 4 ./wrapper train run.toml --set log.dir="'$run'" --set watchdog.start_s=3 "$@" >"$output" 2>"$errors" </dev/null &&
    complain "it has not failed"
  [[ $((SECONDS - begun)) -le 60 ]] || complain "it took $((SECONDS - begun)) s to end"
  expect_stderr 'the start hangs and is ended (code 86)'
}

for rank in 2 0; do
  waits_for $rank "stopped$rank"
  others='ranks 0-1, 3' && [[ $rank -eq 2 ]] || others='ranks 1-3'
  expect_stderr "rank $rank on $(uname -n) has not come to MPI_Init within 3 s"
  expect_stderr "$others wait there"
  expect python3 -c 'import json, sys
rank, host, run = int(sys.argv[1]), sys.argv[2], sys.argv[3]
end = json.load(open(f"{run}/exit.json"))
assert end["code"] == 86 and end["bad_nodes"] == [host] and end["retry"] is True and end["step"] is None, end
assert f"rank {rank} on {host}" in end["reason"], end
hang = json.load(open(f"{run}/hang.json"))
assert hang["kind"] == "not started" and [one["rank"] for one in hang["culprits"]] == [rank], hang
assert hang["waiting"] == [other for other in range(4) if other != rank], hang
assert all(one["pid"] > 0 for one in hang["ranks"] if one["rank"] != rank), hang' "$rank" "$(uname -n)" "stopped$rank"
  [[ $(ls -A "stopped$rank") == $'exit.json\nhang.json' ]] || complain "left behind: $(ls -A "stopped$rank")"
  # The next start knows the files as a run's own.
  expect_exit 0 "$fourfold" train run.toml --set log.dir="'stopped$rank'"
done

# One that is stopped right after it, where the others wait in their first call.
cat >stops.c <<'END'
#include <signal.h>
#include <stdlib.h>
#include <string.h>
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  const int result = PMPI_Init_thread(argc, argv, required, provided);
  const char *rank = getenv("PMI_RANK");
  if (rank && strcmp(rank, "1") == 0) raise(SIGSTOP);
  return result;
}
END
expect cc -shared -fPIC -o stops.so stops.c
begun=$SECONDS
# A sanitized program would refuse to come after another library.
ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0 LD_PRELOAD=$PWD/stops.so "$MPIEXEC" -n 4 "$fourfold" train run.toml --set log.dir=after --set watchdog.start_s=3 >"$output" 2>"$errors" </dev/null &&
  complain "it has not failed"
[[ $((SECONDS - begun)) -le 60 ]] || complain "it took $((SECONDS - begun)) s to end"
expect_stderr "rank 1 on $(uname -n) has not come to MPI_Init within 3 s, or stands still in it or right after it"
expect grep -q '"code": 86' after/exit.json

# A signal, where a rank was told before it could listen, and will not come: the others do not wait for it.
for signal in TERM USR2; do
  # shellcheck disable=SC2016
  only_rank 2 'exec sleep 299.25'
  begun=$SECONDS
  "$MPIEXEC" -n 4 ./wrapper train run.toml --set log.dir=told --set watchdog.start_s=300 >"$output" 2>"$errors" </dev/null &
  launcher=$!
  for _ in $(seq 100); do
    [[ $(pgrep --full --count "fourfold-train run.toml --set log.dir=told") -lt 3 ]] || break
    sleep 0.1
  done
  sleep 1
  pkill "-$signal" --full "fourfold-train run.toml --set log.dir=told"
  wait "$launcher" && complain "it has not failed"
  [[ $((SECONDS - begun)) -le 40 ]] || complain "it took $((SECONDS - begun)) s to end"
  expect_stderr 'stopped before the first step by signal'
  expect test ! -e told
  pkill --full 'sleep 299.25'
done

# Nowhere to meet: then nobody is named, and the run ends all the same. A dry run touches no file.
: >file
waits_for 1 file/run
expect_stderr 'who is missing is not known: file/run/.start-watch-'
waits_for 1 dry --dry-run
expect_stderr 'who is missing is not known'
expect test ! -e dry

# Another start of the run lives: the directory is its own.
expect_exit 0 "$fourfold" train run.toml --set log.dir=taken
cp -r taken before
printf 'fourfold-lease 1 0123456789abcdef elsewhere elsewhere 1 - 0 1\n' >taken/.run-lease
(while sleep 2; do sed -i 's/[0-9]*$/&0/' taken/.run-lease; done) &
beats=$!
waits_for 3 taken
kill "$beats" && wait "$beats" 2>/dev/null
rm -f taken/.run-lease
expect_stderr 'another start of this run lives'
expect diff -r before taken

# A start that is slow but fine goes on: before the limit, and while the ranks have met already. It leaves nothing behind.
only_rank 1 'sleep 3'
for limit in 60 2; do
  expect_exit 0 "$MPIEXEC" -n 4 ./wrapper train run.toml --set log.dir="slow$limit" --set watchdog.start_s=$limit
  expect_stderr 'step 2/2'
  [[ -z $(find "slow$limit" -name '.start*') ]] || complain "left behind: $(ls -A "slow$limit")"
done
expect test ! -e slow2/hang.json
# A limit of 0 is none.
only_rank 1 'sleep 6'
expect_exit 0 "$MPIEXEC" -n 4 ./wrapper train run.toml --set log.dir=unwatched --set watchdog.start_s=0

# What is wrong with the run file is told once, and after MPI_Init as before.
expect_exit 78 ranks 2 train run.toml --set watchdog.start_s=-1
expect_stderr 'watchdog.start_s'
expectations_met
