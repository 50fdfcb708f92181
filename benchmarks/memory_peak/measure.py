#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Memory as it is planned beside what ranks take, over meshes and keys: what the run itself says at its end, and what
the system says of its processes from outside (RssAnon and RssShmem, looked at every few milliseconds).

    benchmarks/memory_peak/measure.py --build build/host-release --markdown table.md
    benchmarks/memory_peak/measure.py --build build/host-release --process --markdown process.md
"""
import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import tempfile
import time

MODEL = """[model]
family = "{family}"
layers = {layers}
hidden = 512
heads = 8
vocab = 16384
context = 512
[train]
global_batch = 8
micro_batch = 2
steps = 3
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

# Ranks, layers, family, keys.
CASES = [
    (1, 12, "gpt2", []),
    (1, 12, "llama", ["train.precision=bf16"]),
    (1, 12, "gpt2", ["train.recompute=full", "train.micro_batch=8"]),
    (1, 12, "gpt2", ["train.head_chunks=8", "train.precision=bf16"]),
    (1, 12, "llama", ["optim.name=sgd", "train.recompute=selective"]),
    (1, 12, "gpt2", ["offload.optimizer=cpu", "train.precision=bf16"]),
    (1, 12, "gpt2", ["offload.optimizer=nvme:.", "offload.buffer_mb=64"]),
    (2, 24, "gpt2", ["mesh.dp=2", "mesh.zero=1"]),
    (2, 24, "gpt2", ["mesh.dp=2", "mesh.zero=2", "train.precision=bf16"]),
    (2, 24, "llama", ["mesh.dp=2", "mesh.zero=3", "mesh.tile_linear=4"]),
    (2, 24, "gpt2", ["mesh.pp=2", "mesh.schedule=1f1b"]),
    (2, 24, "llama", ["mesh.pp=2", "mesh.schedule=zb-v", "train.micro_batch=1"]),
    (2, 24, "gpt2", ["mesh.tp=2"]),
    (2, 24, "llama", ["mesh.cp=2", "train.precision=bf16"]),
    (2, 24, "gpt2", ["mesh.dp=2", "mesh.dp_compress=int8"]),
    (4, 24, "gpt2", ["mesh.pp=2", "mesh.dp=2", "mesh.zero=3"]),
    (4, 24, "llama", ["mesh.dp=2", "mesh.tp=2", "mesh.zero=2"]),
]

# Small models, for what a process takes beside its tensors.
PROCESS_CASES = [(ranks, 2, family, [f"mesh.dp={ranks}", f"train.precision={precision}", "train.micro_batch=1", "train.global_batch=16"])
                 for ranks in (1, 2, 4, 8, 16) for family, precision in (("gpt2", "f32"), ("llama", "bf16"), ("gpt2", "f16"))]


def resident_bytes(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    return 1024 * sum(int(kib) for kib in re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+)", status, re.M))


def rank_processes(folder):
    """pid of each rank, by rank, as the launcher's environment names it."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            program = os.readlink(entry / "exe")
            if not program.startswith(folder) or not program.endswith("fourfold-train"):
                continue
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        rank = re.search(rb"(?:^|\0)PMI_RANK=(\d+)", environment)
        found[int(rank.group(1)) if rank else 0] = int(entry.name)
    return found


class Runs:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.fourfold = str((options.build / "bin" / "fourfold").resolve())
        words = random.Random(1).choices([w + " " for w in ("to", "be", "or", "not", "that", "is", "the", "question")], k=100_000)
        (folder / "text.txt").write_text("".join(words), encoding="utf-8")
        self.run(self.fourfold, "data", "prepare", "--tokenizer", "byte", "--output", "tokens", "text.txt")

    def run(self, *command):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def watched(self, command):
        """The most each rank held at any time it was looked at."""
        peaks = {}
        with open(self.folder / "output.txt", "w", encoding="utf-8") as output:
            process = subprocess.Popen(command, cwd=self.folder, stdout=output, stderr=subprocess.STDOUT)
            ranks = {}
            while process.poll() is None:
                if len(ranks) < self.ranks:
                    ranks = rank_processes(str(self.options.build.resolve()))
                for rank, pid in ranks.items():
                    peaks[rank] = max(peaks.get(rank, 0), resident_bytes(pid))
                time.sleep(0.003)
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{(self.folder / 'output.txt').read_text()}")
        return peaks

    def measure(self, number, case):
        self.ranks, layers, family, keys = case
        run_file = self.folder / "run.toml"
        run_file.write_text(MODEL.format(family=family, layers=layers, tokens=self.folder / "tokens"), encoding="utf-8")
        log = self.folder / f"log{number}"
        sets = [text for key in keys + [f"log.dir={log}", f"checkpoint.dir={log}/checkpoints"] for text in ("--set", key)]
        peaks = self.watched([self.options.mpiexec, "-n", str(self.ranks), self.fourfold, "train", str(run_file), *sets])
        records = map(json.loads, (log / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
        (memory,) = [record for record in records if record["event"] == "memory"]
        rank = memory["rank"]
        planned = sum(memory["planned_bytes"].values())
        return {"ranks": self.ranks, "layers": layers, "family": family, "keys": keys, "rank": rank, "planned_bytes": planned,
                "taken_bytes": memory["taken_bytes"], "seen_bytes": peaks[rank]}


def markdown(rows):
    mib = 2**20
    lines = ["| ranks | model | keys | planned, MiB | taken, MiB | | process from outside, MiB | beyond the plan, MiB |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        keys = ", ".join(f"`{key}`" for key in row["keys"])
        lines.append(f"| {row['ranks']} | {row['family']}, {row['layers']} layers | {keys} | {row['planned_bytes'] / mib:.1f} | "
                     f"{row['taken_bytes'] / mib:.1f} | {100 * (row['taken_bytes'] / row['planned_bytes'] - 1):+.1f} % | "
                     f"{row['seen_bytes'] / mib:.1f} | {(row['seen_bytes'] - row['planned_bytes']) / mib:.1f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/host-release"))
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--process", action="store_true", help="small models on 1 to 16 ranks: what a process takes beside its tensors")
    parser.add_argument("--markdown", type=pathlib.Path, help="where to write the table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(options, pathlib.Path(folder))
        rows = []
        for number, case in enumerate(PROCESS_CASES if options.process else CASES):
            rows.append(runs.measure(number, case))
            print(markdown(rows[-1:]).splitlines()[-1], flush=True)
    if options.markdown:
        options.markdown.write_text(markdown(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
