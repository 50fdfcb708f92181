#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch reaches on the CPU for a whole training step of the GPT-2 124M shape.

A step is forward, backward, clipping by global norm and fused AdamW over random tokens, as `fourfold train` does it.
Writes one JSON object; needs only torch. Nothing else should run on the machine meanwhile.
"""
import argparse
import json
import pathlib
import platform
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "whole_step"))
import peer_models  # noqa: E402
import shapes  # noqa: E402

VOCABULARY = 50257
CONTEXT = 1024
SHAPE = shapes.Shape("gpt2", 12, 768, 12, 12, 3072, VOCABULARY, CONTEXT)


def measure(precision, mode, options):
    model = peer_models.make_model(SHAPE, precision, "cpu")
    optimizer = peer_models.make_optimizer(model)
    forward = torch.compile(model) if mode == "compile" else model
    generator = torch.Generator().manual_seed(2)
    seconds = []
    losses = []
    for step in range(options.warmup + options.steps):
        data = torch.randint(VOCABULARY, (options.batch, options.tokens + 1), generator=generator)
        start = time.perf_counter()
        losses.append(peer_models.train_step(model, forward, optimizer, [(data[:, :-1], data[:, 1:])], precision))
        passed = time.perf_counter() - start
        if step >= options.warmup:
            seconds.append(passed)
        print(f"{precision} {mode} step {step}: {passed:.2f} s, loss {losses[-1]:.4f}", file=sys.stderr, flush=True)
    tokens = options.batch * options.tokens
    return {
        "precision": precision,
        "mode": mode,
        "step_s": seconds,
        "loss": losses,
        "best_tokens_per_s": tokens / min(seconds),
        "median_tokens_per_s": tokens / statistics.median(seconds),
    }


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=4, help="sequences of a step")
    parser.add_argument("--tokens", type=int, default=1024, help=f"tokens of a sequence, at most {CONTEXT}")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=1, help="steps before the clock counts (compile needs one)")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--precisions", nargs="+", default=["f32", "bf16-autocast", "bf16-weights"],
                        choices=["f32", "bf16-autocast", "bf16-weights"])
    parser.add_argument("--modes", nargs="+", default=["eager", "compile"], choices=["eager", "compile"])
    parser.add_argument("--json", help="where to write the result; standard output by default")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    result = {
        "peer": f"PyTorch {torch.__version__}",
        "cpu": cpu_name(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": options.threads,
        "batch": options.batch,
        "tokens": options.tokens,
        "runs": [measure(precision, mode, options) for precision in options.precisions for mode in options.modes],
    }
    text = json.dumps(result, indent=2) + "\n"
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
