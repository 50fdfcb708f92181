#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Trains the quickstart's model with each way of sending less, one run after the other from the same seeds, and prints
bytes on the wire and losses side by side as a Markdown table. The tokens must be there: scripts/quickstart makes them
(runs/quickstart/tokens_*). A run takes a minute or so.

    benchmarks/gradient_compression/compare.py --build build/host-release --steps 600 --seeds 1234 1 2
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

LOCAL = ["mesh.dp_mode=local", "mesh.average_every=10"]
VARIANTS = {
    "none": [],
    "bf16": ["mesh.dp_compress=bf16"],
    "int8": ["mesh.dp_compress=int8"],
    "lowrank:4": ["mesh.dp_compress=lowrank:4"],
    "average": [*LOCAL, "optim.outer=average"],
    "nesterov": [*LOCAL, "optim.outer=nesterov"],
}


def records(folder):
    with open(folder / "metrics.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def train(options, seed, settings):
    """One run in a folder of its own; its records."""
    with tempfile.TemporaryDirectory() as folder:
        command = [options.mpiexec, "-n", str(options.ranks), str(options.build / "bin" / "fourfold"), "train",
                   "configs/quickstart.toml"]
        for setting in [f"log.dir={folder}", f"checkpoint.dir={folder}/checkpoints", "checkpoint.every_steps=0",
                        "log.every_steps=1", "log.progress=none", f"train.steps={options.steps}",
                        "optim.decay_steps=600", f"train.seed={seed}", *options.set, *settings]:
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


def row(name, runs, bases):
    """Means over the seeds; of the changes, seed by seed, the extremes."""
    def mean(values):
        return sum(values) / len(values)

    def change(key):
        changes = [100 * (run[key] / base[key] - 1) for run, base in zip(runs, bases)]
        text = f"{mean([run[key] for run in runs]):.4f} | {mean(changes):+.2f} %"
        return text + (f" ({min(changes):+.2f} to {max(changes):+.2f})" if len(runs) > 1 else "")

    sent = runs[0]["bytes"]
    ratio = sent / bases[0]["bytes"] if bases[0]["bytes"] else 0
    return (f"| `{name}` | {sent / 1e6:.3f} | {ratio:.4f} | {change('training')} | "
            f"{change('validation')} | {mean([run['step_ms'] for run in runs]):.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/host-release"))
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1234])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for all runs")
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS),
                        help="the first one is what the others are held against")
    options = parser.parse_args()

    print(f"{options.ranks} ranks, {options.steps} steps, seeds {options.seeds}; training loss: mean of the last 50 steps\n")
    print("| | MB sent per rank and step | of the first | training loss | change | validation loss | change | step, ms |")
    print("|---|---|---|---|---|---|---|---|")
    bases = None
    for name in options.variants:
        runs = [summary(train(options, seed, VARIANTS[name])) for seed in options.seeds]
        bases = bases or runs
        print(row(name, runs, bases))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
