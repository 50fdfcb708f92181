#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""What keys that save memory save and cost: bytes of a rank as `fourfold plan` tells them, and the time of a step as a
multiple of the one without the key, measured in turn in one run. Nothing else should run meanwhile.

    benchmarks/memory_switches/measure.py --build build/host-release --markdown table.md
"""
import argparse
import json
import pathlib
import random
import re
import statistics
import subprocess
import tempfile

USES = ("weights", "gradients", "optimizer", "activations", "communication", "workspace")

MODEL = """[model]
family = "gpt2"
layers = 12
hidden = 384
heads = 6
vocab = 8192
context = 512
[train]
global_batch = 8
micro_batch = 2
steps = {steps}
[data]
train = ["{tokens}"]
[log]
tensorboard = false
report = false
progress = "none"
[checkpoint]
resume = "never"
every_steps = 0
"""

# Groups: ranks, what all of a group have in common, and what each adds. The first of a group is the one to compare with.
GROUPS = [
    (2, ["mesh.dp=2"], [
        [], ["train.precision=bf16"], ["train.recompute=selective"], ["train.recompute=every:2"], ["train.recompute=full"],
        ["train.head_chunks=8"], ["mesh.zero=1"], ["mesh.zero=2"], ["mesh.zero=3"], ["mesh.zero=3", "mesh.tile_linear=4"],
        ["offload.optimizer=cpu"], ["offload.optimizer=nvme:."], ["offload.activations=cpu"], ["mesh.dp_compress=int8"], ["mesh.dp_mode=local"],
        ["mesh.zero=3", "mesh.tile_linear=4", "train.recompute=full", "train.head_chunks=8", "offload.optimizer=nvme:."]]),
]


class Runs:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.fourfold = str(options.build.resolve() / "bin" / "fourfold")
        words = random.Random(1).choices([w + " " for w in ("to", "be", "or", "not", "that", "is", "the", "question")], k=200_000)
        (folder / "text.txt").write_text("".join(words), encoding="utf-8")
        self.run(self.fourfold, "data", "prepare", "--tokenizer", "byte", "--output", "tokens", "text.txt")
        self.run_file = folder / "run.toml"
        self.run_file.write_text(MODEL.format(steps=options.steps, tokens=folder / "tokens"), encoding="utf-8")

    def run(self, *command):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    @staticmethod
    def sets(keys):
        return [text for key in keys for text in ("--set", key)]

    def bytes_of_rank(self, ranks, keys):
        """MiB by use, of rank 0."""
        report = self.run(self.fourfold, "plan", str(self.run_file), "--ranks", str(ranks), "--rank", "0", *self.sets(keys))
        (line,) = [each for each in report.splitlines() if each.startswith("  memory")]
        unit = {"MiB": 1.0, "GiB": 1024.0, "KiB": 1 / 1024}[line.split()[-1]]
        mib = {use: unit * float(re.search(rf"{use} ([0-9.]+)", line).group(1)) for use in USES}
        elsewhere = re.search(r"^offloaded, each rank at most: ([0-9.]+) (\w+) in host memory(?:, ([0-9.]+) (\w+) on disk)?", report, re.M)
        units = {"MiB": 1.0, "GiB": 1024.0, None: 0.0}
        mib["host"] = float(elsewhere.group(1)) * units[elsewhere.group(2)] if elsewhere else 0.0
        mib["disk"] = float(elsewhere.group(3) or 0) * units[elsewhere.group(4)] if elsewhere else 0.0
        return mib

    def step_s(self, ranks, keys, name):
        """The shortest and the median step but the first and the last, which may have begun before, in seconds."""
        log = self.folder / name
        self.run(self.options.mpiexec, "-n", str(ranks), self.fourfold, "train", str(self.run_file), "--set", f"log.dir={log}",
                 *self.sets(keys))
        records = map(json.loads, (log / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
        steps = [record["step_s"] for record in records if record["event"] == "step"][1:-1]
        return min(steps), statistics.median(steps)


def measure(runs, options, number, group):
    ranks, common, variants = group
    bytes_of = [runs.bytes_of_rank(ranks, common + keys) for keys in variants]
    best = [float("inf")] * len(variants)
    for turn in range(options.rounds):
        for i, keys in enumerate(variants):
            best[i] = min(best[i], runs.step_s(ranks, common + keys, f"group{number}.{i}.{turn}")[0])
    return [{"ranks": ranks, "common": common, "keys": keys, "mib": mib, "best_step_s": step_s, "times": step_s / best[0]}
            for keys, mib, step_s in zip(variants, bytes_of, best)]


def markdown(rows):
    lines = ["| | weights | gradients | optimizer | activations | other | on the device | in host memory | on disk | a step takes |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        keys = ", ".join(f"`{key}`" for key in row["keys"]) or "none of them"
        mib = row["mib"]
        parts = [mib[use] for use in USES[:4]] + [mib["communication"] + mib["workspace"], sum(mib[use] for use in USES), mib["host"], mib["disk"]]
        lines.append(f"| {keys} | " + " | ".join(f"{part:.0f}" for part in parts) + f" | {row['times']:.2f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/host-release"))
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--scratch", help="folder on the disk that offloaded state should go to")
    parser.add_argument("--steps", type=int, default=6, help="of one run; the first and the last do not count")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each variant, in turn")
    parser.add_argument("--json", type=pathlib.Path, help="where to write all figures")
    parser.add_argument("--markdown", type=pathlib.Path, help="where to write the table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        runs = Runs(options, pathlib.Path(folder))
        rows = [row for number, group in enumerate(GROUPS) for row in measure(runs, options, number, group)]
    print(markdown(rows), end="")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(markdown(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
