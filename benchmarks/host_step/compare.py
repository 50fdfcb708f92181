#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Sets a training step of GPT-2 124M beside PyTorch's on this machine, in one run: tokens per second against the best
of eager and compiled, and the share of the measured product ceiling. Nothing else should run meanwhile.

    benchmarks/host_step/compare.py --build build/host-release --peer-python PYTHON --json results.json
"""
import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PEERS = {"f32": ["f32"], "bf16": ["bf16-autocast", "bf16-weights"]}


def fourfold(options, precision):
    command = [options.mpiexec, "-n", str(options.ranks), str(options.build / "bin" / "host_step"),
               "--precision", precision, "--steps", str(options.steps)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peer(options, precision, mode):
    """None when PyTorch needs longer than the limit for a few steps."""
    command = [options.peer_python, str(HERE / "peer.py"), "--precisions", precision, "--modes", mode,
               "--threads", str(options.ranks), "--steps", str(options.peer_steps)]
    try:
        output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=options.limit_s).stdout
    except subprocess.TimeoutExpired:
        return None
    return json.loads(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/host-release"))
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--ranks", type=int, default=2, help="one per core; PyTorch gets as many threads")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--peer-python", default=sys.executable, help="a Python that has torch")
    parser.add_argument("--peer-steps", type=int, default=2)
    parser.add_argument("--limit-s", type=float, default=600, help="for one run of the peer")
    parser.add_argument("--precisions", nargs="+", default=["f32", "bf16"], choices=["f32", "bf16"])
    parser.add_argument("--json", type=pathlib.Path, help="where to write all figures")
    options = parser.parse_args()

    record = {}
    for precision in options.precisions:
        ours = fourfold(options, precision)
        runs = {(kind, mode): peer(options, kind, mode) for kind in PEERS[precision] for mode in ("eager", "compile")}
        best = max((run["runs"][0]["best_tokens_per_s"] for run in runs.values() if run), default=0.0)
        print(f"{precision}: fourfold {ours['best_tokens_per_s']:.1f} tokens/s on {ours['ranks']} ranks, "
              f"{100 * ours['share_of_ceiling']:.0f} % of the product ceiling "
              f"({ours['ceiling_gflop_per_s']:.0f} GFLOP/s)")
        for (kind, mode), run in runs.items():
            rate = f"{run['runs'][0]['best_tokens_per_s']:.1f} tokens/s" if run else f"over {options.limit_s:.0f} s"
            print(f"  PyTorch {kind} {mode}: {rate}")
        if best:
            print(f"  ratio to the best of PyTorch: {ours['best_tokens_per_s'] / best:.2f}")
        sys.stdout.flush()
        record[precision] = {"fourfold": ours, "peer": {f"{k} {m}": run for (k, m), run in runs.items()},
                             "ratio": ours["best_tokens_per_s"] / best if best else None}
    if options.json:
        options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
