#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Trains the quickstart's model with each way of compressing gradients, one run after the other from the same seed, and
prints bytes on the wire and losses side by side as a Markdown table. The tokens must be there: scripts/quickstart makes
them (runs/quickstart/tokens_*). A run takes a minute or two.

    benchmarks/traffic/compare.py --build build/host-release --steps 600
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

VARIANTS = {
    "none": [],
    "bf16": ["mesh.dp_compress=bf16"],
    "int8": ["mesh.dp_compress=int8"],
    "lowrank:4": ["mesh.dp_compress=lowrank:4"],
}


def records(folder):
    with open(folder / "metrics.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def train(options, settings):
    """One run in a folder of its own; its records."""
    with tempfile.TemporaryDirectory() as folder:
        command = [options.mpiexec, "-n", str(options.ranks), str(options.build / "bin" / "fourfold"), "train",
                   "configs/quickstart.toml"]
        for setting in [f"log.dir={folder}", f"checkpoint.dir={folder}/checkpoints", "checkpoint.every_steps=0",
                        "log.every_steps=1", "log.progress=none", f"train.steps={options.steps}",
                        "optim.decay_steps=600", *options.set, *settings]:
            command += ["--set", setting]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        return records(pathlib.Path(folder))


def summary(events):
    steps = [event for event in events if event["event"] == "step"]
    last = steps[-50:]
    times = sorted(event["step_s"] for event in steps[1:])
    return {
        "bytes": next(event for event in events if event["event"] == "start").get("data_plane_bytes", 0),
        "training": sum(event["loss"] for event in last) / len(last),
        "validation": [event["loss"] for event in events if event["event"] == "eval"][-1],
        "step_ms": 1000 * times[len(times) // 2],
    }


def row(name, run, base):
    def change(key):
        return f"{run[key]:.4f} ({100 * (run[key] / base[key] - 1):+.2f} %)"
    ratio = run["bytes"] / base["bytes"]
    return (f"| `{name}` | {run['bytes'] / 1e6:.3f} | {ratio:.4f} | {change('training')} | {change('validation')} | "
            f"{run['step_ms']:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/host-release"))
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for all runs")
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS),
                        help="the first one is what the others are held against")
    options = parser.parse_args()

    print(f"{options.ranks} ranks, {options.steps} steps; training loss: mean of the last 50 steps\n")
    print("| | MB of gradients per rank and step | of the first | training loss | validation loss | step, ms |")
    print("|---|---|---|---|---|---|")
    base = None
    for name in options.variants:
        run = summary(train(options, VARIANTS[name]))
        base = base or run
        print(row(name, run, base))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
