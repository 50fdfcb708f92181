#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the numbers that a page prints after `fourfold plan` with what it says. Usage: planned_memory.py RECORD

RECORD is written by printed_commands.py. A command that ends with `# N GiB` has N for the fullest rank, with
`, bubble P %` also the share of the bubble; both have one decimal."""
import json
import re
import sys

PRINTED = re.compile(r"# ([\d.]+) GiB(?:, bubble ([\d.]+) %)?$")


def fullest_rank(output: str) -> float:
    """The largest number in the column GiB of a plan's table of stages."""
    lines = iter(output.splitlines())
    column = next(line.split().index("GiB") for line in lines if line.startswith("stage"))
    rows = []
    for line in lines:
        if not re.match(r" *\d+ ", line):
            break
        rows.append(float(line.split()[column]))
    return max(rows)


def bubble(output: str) -> float:
    """In percent."""
    found = re.search(r"^bubble .*\(([\d.]+) %\)", output, re.M)
    return float(found[1]) if found else float("nan")


def main() -> int:
    wrong = compared = 0
    for step in json.load(open(sys.argv[1], encoding="utf-8")):
        printed = PRINTED.search(step["command"])
        if not printed:
            continue
        compared += 1
        says = [(printed[1], fullest_rank(step["stdout"]), "GiB")]
        if printed[2]:
            says.append((printed[2], bubble(step["stdout"]), "% of bubble"))
        for on_page, planned, unit in says:
            if not abs(planned - float(on_page)) <= 0.0501:
                place = f"{step['page']}:{step['line']}"
                print(f"{place}: prints {on_page} {unit}, the plan has {planned:.2f}: {step['command']}")
                wrong += 1
    print(f"{compared} plans compared, {wrong} numbers differ")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
