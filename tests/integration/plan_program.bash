#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# fourfold plan as users meet it: on a login node, with its files and its refusals. Usage: plan_program.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
build=$1
fourfold=$build/bin/fourfold
work=$(mktemp -d)
trap 'rm -rf "$work" "$output" "$errors"' EXIT
cd "$work" || exit 1

# No MPI: it must start where there is none.
expect_exit 0 ldd "$build/bin/fourfold-plan"
expect_no_stdout libmpi
expect_no_stdout libhdf5

expect_exit 0 "$fourfold" help plan
for section in OUTPUT "SCHEDULE FILES" EXAMPLES "EXIT CODES"; do
  expect_stdout "$section"
done

# The example of the manual page: 24 micro-batches of work 3 on each of 8 ranks, and 7 halves of a forward pass.
expect_exit 0 "$fourfold" plan --schedule zb-v --stages 8 --micro-batches 24 --svg v.svg --trace v.json --csv v.csv
expect_stdout "step     75.5, of which 72 work"
expect_stdout "bubble   3.5 (4.64 %)   closed form 3.5"
expect_stdout "waiting  0 (0.00 %)"
expect_stdout "    7         3.5   4.64 %         8            8  8 + 8"
expect_stdout "wrote v.svg"
expect python3 -c '
import xml.etree.ElementTree as tree
cells = [node for node in tree.parse("v.svg").iter() if node.tag.endswith("rect") and len(node)]
assert len(cells) == 8 * 24 * 6, len(cells)'
expect python3 -c '
import json
events = json.load(open("v.json"))["traceEvents"]
slices = [event for event in events if event["ph"] == "X"]
assert len(slices) == 8 * 24 * 6
assert {event["tid"] for event in slices} == set(range(8))
assert max(event["ts"] + event["dur"] for event in slices) == 75.5e6'

# What it writes it reads again, and prices the same; other costs and links count.
expect_exit 0 "$fourfold" plan --schedule v.csv
expect_stdout "v.csv: 8 stages, 24 micro-batches, 2 chunks per stage"
expect_stdout "bubble   3.5 (4.64 %)"
expect_no_stdout "closed form 3.5"
expect_exit 0 "$fourfold" plan --schedule 1f1b --stages 4 --micro-batches 8 --costs 1,2,1
expect_stdout "bubble   12 (27.27 %)   closed form 12"
expect_exit 0 "$fourfold" plan --schedule 1f1b --stages 4 --micro-batches 8 --costs 1,2,1 --link-time 0.5
expect_no_stdout "bubble   12 "

# Refusals: what is wrong, why, what to do.
expect_exit 64 "$fourfold" plan --schedule 1f1b --stages 4
expect_stderr "--micro-batches"
expect_exit 64 "$fourfold" plan --schedule 1f1b --stages 4 --micro-batches 8 --costs 1,2
expect_stderr "--costs: At least 3"
expect_exit 64 "$fourfold" plan --schedule 1f1b --stages 4 --micro-batches 8 --costs 1,inf,2
expect_stderr "three times"
expect_exit 64 "$fourfold" plan --schedule v.csv --chunks 2
expect_exit 64 "$fourfold" plan --schedule 1f1b --stages 0 --micro-batches 8
expect_exit 78 "$fourfold" plan --schedule zbv --stages 4 --micro-batches 8
expect_stderr 'did you mean "zb-v"?'
expect_exit 78 "$fourfold" plan --schedule interleaved --stages 4 --micro-batches 3
expect_stderr "at least 4 micro-batches"
expect_exit 78 "$fourfold" plan --schedule v.csv --stages 4
expect_stderr "set mesh.pp to 8"
expect_exit 78 "$fourfold" plan --schedule missing.csv
expect_stderr "missing.csv cannot be read"
sed '5s/B0/X0/' <<<$'\n\n\nF0,F1,B0,B1\nF0,B0,F1,B1' >broken.csv
expect_exit 78 "$fourfold" plan --schedule broken.csv
expect_stderr "broken.csv line 5, column 4: 'X0' is no action"
printf 'F0,B0,F1,B1\nF0,F1,B0,B1\n' >stuck.csv
expect_exit 78 "$fourfold" plan --schedule stuck.csv
expect_stderr "stuck.csv cannot run: deadlock: line 1, column 4 (B0) waits for what line 2, column 7 (B0) sends"
printf 'F0,B0\n\nF0,B0\n' >gap.csv
expect_exit 78 "$fourfold" plan --schedule gap.csv
expect_stderr "gap.csv line 2 is empty"
expect_exit 73 "$fourfold" plan --schedule 1f1b --stages 2 --micro-batches 2 --svg nowhere/x.svg
expect_exit 78 "$fourfold" plan --schedule 1f1b --stages 64 --micro-batches 1024 --svg large.svg
expect_stderr "too many for a picture"
expect test ! -e large.svg

expectations_met
