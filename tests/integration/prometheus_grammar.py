# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Holds a file to the grammar of Prometheus' text format and to its rules for names; prints its samples as JSON.

Usage: prometheus_grammar.py FILE. By the description of the format (version 0.0.4), and by the parser of
prometheus_client too where that is installed.
"""
import json
import math
import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)?\}})? (\S+)")
# https://prometheus.io/docs/practices/naming: base units, at the end, in the plural; _total for counters alone.
NOT_BASE_UNITS = re.compile(r"_(ms|milliseconds|minutes|hours|days|kilobytes|megabytes|percent|s|bits)(_|$)")


def unescaped(text):
    return re.sub(r'\\(["\\n])', lambda found: "\n" if found[1] == "n" else found[1], text)


def samples_of(text):
    assert text.endswith("\n"), "the last line has no end"
    described, typed, seen, samples, current = set(), {}, set(), [], None
    for line in text[:-1].split("\n"):
        if comment := re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line):
            kind, name, rest = comment.groups()
            if name != current:
                assert name not in typed and name not in described, f"the lines of {name} are not together"
                current = name
            if kind == "HELP":
                assert name not in described, f"{name} has two HELP lines"
                assert re.fullmatch(r"(?:[^\\]|\\[\\n])*", rest), line
                described.add(name)
            else:
                assert name not in typed and rest in ("counter", "gauge", "histogram", "summary", "untyped"), line
                typed[name] = rest
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, f"no line of the format: {line!r}"
        name, value = sample[1], float(sample[sample.lastindex])
        assert name == current and name in typed and name in described, f"{name} is not introduced"
        labels = {label: unescaped(text) for label, text in re.findall(LABEL, sample[2] or "")}
        key = (name, tuple(sorted(labels.items())))
        assert key not in seen, f"twice: {line!r}"
        seen.add(key)
        assert math.isfinite(value), line
        assert name.startswith("fourfold_") and not NOT_BASE_UNITS.search(name), name
        assert name.endswith("_total") == (typed[name] == "counter"), name
        samples.append([name, labels, value])
    return samples


def main(path):
    with open(path, encoding="utf-8", newline="") as file:  # strict: what is no UTF-8 is an error
        text = file.read()
    samples = samples_of(text)
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError:
        print("prometheus_client is not installed", file=sys.stderr)
    else:
        theirs = [[one.name, one.labels, one.value] for family in text_string_to_metric_families(text)
                  for one in family.samples]
        assert theirs == samples, "prometheus_client reads something else"
    print(json.dumps(samples))


main(sys.argv[1])
