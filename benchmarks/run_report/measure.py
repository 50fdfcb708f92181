#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of what reads metrics.jsonl, over its length: the report, a look at the run, and the end of a restart.

Usage: measure.py BUILD_DIR [--steps N ...] [--folder DIR]. Makes the files in a temporary folder (212 MB per million steps);
a measurement is one process, its CPU and wall time and its largest resident set, after the file was read once.
"""
import argparse
import json
import math
import os
import pathlib
import random
import subprocess
import tempfile
import time

RUN = """[model]
layers = 1
hidden = 16
heads = 2
vocab = 257
context = 32
[train]
global_batch = 4
micro_batch = 4
steps = {steps}
[optim]
schedule = "constant"
[data]
train = ["tokens"]
[log]
dir = "run"
progress = "none"
"""


def step_line(step, noise):
    """As fourfold writes it: numbers with all their digits."""
    loss = 2 + 8 / math.sqrt(step) + 0.05 * noise()
    step_s = 0.1 * (1 + abs(0.02 * noise()) + (0.5 if noise() > 3 else 0))
    return (f'{{"event":"step","time":{1.7e9 + 0.1 * step!r},"step":{step},"loss":{loss!r},"grad_norm":{abs(noise())!r},'
            f'"lr":{6e-4 * math.exp(-step / 4e6)!r},"tokens":{step * 4096},"step_s":{step_s!r},"tokens_per_s":{4096 / step_s!r},'
            f'"data_s":{1e-4 * abs(noise())!r}}}\n')


def write_metrics(path, steps):
    """A run of so many steps that was started again twenty times, each time a thousand steps back."""
    noise = random.Random(1).gauss
    with open(path, "w", encoding="utf-8") as out:
        def start(step):
            out.write(json.dumps({"event": "resume" if step else "start", "time": 1.7e9 + 0.1 * step, "from_step": step,
                                  "steps": steps, "checkpoint": f"step-{step}" if step else "", "mesh": "pp1 dp8 cp1 tp1",
                                  "rank_hosts": [f"node{rank // 4}" for rank in range(8)]}) + "\n")
        start(0)
        step = 0
        for leg in range(1, 22):
            stop = min(steps, leg * steps // 21 + 1000)
            while step < stop:
                step += 1
                out.write(step_line(step, lambda: noise(0, 1)))
            if step < steps:
                step -= min(1000, step)
                start(step)


def measured(command, folder):
    """(exit code, wall s, CPU s, largest resident set in MiB) of one process."""
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {code}: {errors}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--steps", type=int, nargs="+", default=[1000, 100_000, 1_000_000, 5_000_000])
    arguments.add_argument("--folder", help="where to make the files (a temporary one)")
    options = arguments.parse_args()
    fourfold = (options.build / "bin/fourfold").resolve()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        (folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 400, encoding="utf-8")
        measured([fourfold, "data", "prepare", "--output", "tokens", "text.txt"], folder)
        print("| logged steps | metrics.jsonl | program | wall s | CPU s | largest resident set |")
        print("|---|---|---|---|---|---|")
        for steps in options.steps:
            run = folder / "run"
            (folder / "run.toml").write_text(RUN.format(steps=2), encoding="utf-8")
            subprocess.run(["rm", "-rf", run], check=True)
            measured([fourfold, "train", "run.toml"], folder)
            (folder / "run.toml").write_text(RUN.format(steps=3), encoding="utf-8")
            alone = measured([fourfold, "train", "run.toml"], folder)
            write_metrics(run / "metrics.jsonl", steps)
            size = f"{(run / 'metrics.jsonl').stat().st_size / 1e6:.0f} MB"
            for verb in ("report", "status"):
                measured([fourfold, verb, "run"], folder)  # the file is in the page cache then
                wall, cpu, resident = measured([fourfold, verb, "run"], folder)
                print(f"| {steps} | {size} | {verb} | {wall:.2f} | {cpu:.2f} | {resident:.1f} MiB |", flush=True)
            (folder / "run.toml").write_text(RUN.format(steps=4), encoding="utf-8")
            wall, cpu, resident = measured([fourfold, "train", "run.toml"], folder)
            print(f"| {steps} | {size} | restart of train, one step | {wall:.2f} (+{wall - alone[0]:.2f}) | "
                  f"{cpu:.2f} (+{cpu - alone[1]:.2f}) | {resident:.1f} MiB (+{resident - alone[2]:.1f}) |", flush=True)


if __name__ == "__main__":
    main()
