#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# fourfold bench as users meet it: over processes and threads, with its files and its refusals. Speeds are not looked
# at. Usage: bench_program.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"
small=(--max-bytes 64K --factor 32 --seconds 0.01 --warmup 1)

expect_exit 0 "$fourfold" bench comm --help
for section in "HOW IT MEASURES" COLUMNS MESH EXAMPLES "EXIT CODES"; do
  expect_stdout "$section"
done
expect_exit 64 "$fourfold" bench
expect_exit 64 "$fourfold" bench com

# Processes, with MPI's own beside them.
expect_exit 0 "$MPIEXEC" -n 2 "$fourfold" bench comm "${small[@]}" --library --csv out.csv --svg out.svg
expect_stdout "transport mpi, world of 2 ranks"
expect_stdout "wrong elements: 0"
expect_stdout "wrote out.csv"
expect python3 -c '
import csv, xml.etree.ElementTree as tree
rows = list(csv.DictReader(open("out.csv")))
operations = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"]
assert {row["algorithm"] for row in rows} == {"shared", "direct"}, rows
assert [row["operation"] for row in rows] == [each for each in operations for _ in (8, 256, 8192)], rows
factors = dict(zip(operations, (1, 0.5, 0.5, 0.5, 1)))
for row in rows:
    seconds, bus = float(row["time_us"]) / 1e6, float(row["busbw_gb_s"])
    assert abs(int(row["bytes"]) / seconds / 1e9 * factors[row["operation"]] / bus - 1) < 1e-4, row
    assert row["ranks"] == "2" and row["wrong"] == "0" and float(row["ratio"]) > 0, row
lines = [node for node in tree.parse("out.svg").iter() if node.get("class", "").split()[:1] == ["line"]]
assert len(lines) == 10, len(lines)'

# A line of a mesh, all of them at once; MPI has no sums of bf16.
expect_exit 0 "$MPIEXEC" -n 4 "$fourfold" bench comm "${small[@]}" --mesh dp=auto,tp=2 --axis tp --library \
  --dtype bf16 --operation all_reduce,all_gather
expect_stdout "tp of 2 ranks, 2 of them at the same time"
expect_stdout "wrong elements: 0"
expect grep -qE "^all_reduce .* bf16 .* - +- +-$" "$output"
expect grep -qE "^all_gather .* bf16 .* [0-9.]+$" "$output"

# Every way that collectives can go; what is messages always is measured once.
expect_exit 0 "$MPIEXEC" -n 2 "$fourfold" bench comm "${small[@]}" --algorithm auto,direct --algorithm shared
expect_stdout "wrong elements: 0"
for operation in all_reduce all_gather reduce_scatter; do
  expect test "$(grep -cE "^$operation +direct " "$output")" -eq 3
  expect test "$(grep -cE "^$operation +shared " "$output")" -eq 3
done
expect test "$(grep -cE "^(all_to_all|send_recv) " "$output")" -eq 6
expect_exit 0 "$MPIEXEC" -n 4 "$fourfold" bench comm "${small[@]}" --algorithm ring,tree --dtype bf16
expect_stdout "wrong elements: 0"
expect test "$(grep -cE "^(all_reduce|all_gather) +ring " "$output")" -eq 6
expect test "$(grep -cE "^all_reduce +tree " "$output")" -eq 3
expect_exit 64 "$fourfold" bench comm --threads 2 --algorithm fast

# Threads.
expect_exit 0 "$fourfold" bench comm --threads 3 "${small[@]}" --operation send_recv --operation all_to_all --dtype i64
expect_stdout "transport threads, world of 3 ranks"
expect_stdout "wrong elements: 0"
expect test "$(grep -c '^[a-z]' "$output")" -eq 6

# Refusals: what is wrong, why, what to do; told once.
expect_exit 78 "$fourfold" bench comm --threads 1
expect_stderr "nothing is sent"
expect_exit 78 "$MPIEXEC" -n 2 "$fourfold" bench comm --mesh dp=3
expect_stderr "does not fit 2 ranks"
expect test "$(grep -c error: "$errors")" -eq 1
expect_exit 78 "$fourfold" bench comm --threads 2 --mesh dp=2 --axis tp
expect_stderr "--axis tp has one rank"
expect_exit 64 "$fourfold" bench comm --threads 2 --axis xp
expect_exit 64 "$fourfold" bench comm --threads 2 --mesh dp=2,xp=1
expect_stderr "'xp=1'"
expect_exit 64 "$fourfold" bench comm --threads 2 --operation allreduce
expect_exit 64 "$fourfold" bench comm --threads 2 --dtype u8
expect_exit 64 "$fourfold" bench comm --threads 2 --min-bytes 1M --max-bytes 1K
expect_stderr "no size is left"
expect_exit 64 "$fourfold" bench comm --threads 2 --min-bytes 0
expect_exit 64 "$fourfold" bench comm --threads 2 --max-bytes 1X
expect_exit 64 "$fourfold" bench comm --threads 2 --library
expect_exit 78 "$fourfold" bench comm --threads 200 --max-bytes 64G
expect_stderr "do not fit"
expect_stderr "--max-bytes"
expect_exit 73 "$fourfold" bench comm --threads 2 "${small[@]}" --csv nowhere/out.csv
expect_no_stdout "all_reduce"
expect_exit 73 "$MPIEXEC" -n 2 "$fourfold" bench comm "${small[@]}" --svg nowhere/out.svg
expect test ! -e nowhere

# Its own files are replaced, those of others are not.
expect_exit 0 "$MPIEXEC" -n 2 "$fourfold" bench comm "${small[@]}" --csv out.csv --svg out.svg
for kind in csv svg; do
  echo mine >"mine.$kind"
  expect_exit 78 "$MPIEXEC" -n 2 "$fourfold" bench comm "${small[@]}" "--$kind" "mine.$kind"
  expect_stderr "not made by \`fourfold bench --$kind\`"
  expect test "$(cat "mine.$kind")" = mine
done

expectations_met
