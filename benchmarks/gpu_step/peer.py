#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch reaches on a GPU for the training steps that gpu_step measures.

Every way asked for, out of precisions, compilations and kernels of attention, is measured by itself: the median of its steps
counts. What a way cannot do (no kernel, no compiler, no memory) is noted. Writes one JSON object. Needs only torch; a GPU,
unless --tiny.

    benchmarks/gpu_step/peer.py --model gpt2-124m --precisions bf16-autocast bf16-weights --modes default --attentions default cudnn
"""
import argparse
import contextlib
import dataclasses
import gc
import itertools
import json
import pathlib
import statistics
import sys
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "whole_step"))
import peer_models  # noqa: E402
import shapes  # noqa: E402

PRECISIONS = ("bf16-autocast", "bf16-weights")
MODES = ("eager", "default", "max-autotune", "max-autotune-no-cudagraphs")
ATTENTIONS = ("default", "cudnn")
# Codes of the index of a token file, and how torch reads them.
TOKEN_TYPES = {1: (torch.uint8, 0xFF), 4: (torch.int32, 0x7FFFFFFF), 8: (torch.int16, 0xFFFF)}


def read_tokens(prefix):
    """All tokens of PREFIX.bin as `fourfold data prepare` writes them."""
    index = pathlib.Path(f"{prefix}.idx").read_bytes()
    if index[:9] != b"MMIDIDX\0\0" or index[17] not in TOKEN_TYPES:
        raise SystemExit(f"peer.py: {prefix}.idx is not an index of tokens that can be read here")
    dtype, mask = TOKEN_TYPES[index[17]]
    return torch.frombuffer(bytearray(pathlib.Path(f"{prefix}.bin").read_bytes()), dtype=dtype).long() & mask


class Batches:
    """The micro-batches of a step: random ones, the same every time; or others of a file every time, from the host."""

    def __init__(self, shape, device, token_file):
        self.shape, self.device = shape, device
        self.generator = torch.Generator().manual_seed(2)
        self.tokens = read_tokens(token_file) if token_file else None
        count = shape.global_batch * (shape.tokens + 1)
        self.random = None if token_file else torch.randint(shape.vocab, (count,), generator=self.generator)
        self.kept = None if token_file else self.cut(self.random.view(shape.global_batch, -1).to(device))

    def cut(self, data):
        return [(part[:, :-1].contiguous(), part[:, 1:].contiguous()) for part in data.split(self.shape.micro_batch)]

    def next(self):
        if self.kept is not None:
            return self.kept
        length = self.shape.tokens + 1
        starts = torch.randint(len(self.tokens) - length + 1, (self.shape.global_batch,), generator=self.generator)
        return self.cut(torch.stack([self.tokens[start:start + length] for start in starts.tolist()]).to(self.device))


def attention_kernels(kind):
    return sdpa_kernel(SDPBackend.CUDNN_ATTENTION) if kind == "cudnn" else contextlib.nullcontext()


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def measure(shape, precision, mode, attention, options):
    model = peer_models.make_model(shape, precision, options.device)
    optimizer = peer_models.make_optimizer(model)
    forward = model if mode == "eager" else torch.compile(model, mode=None if mode == "default" else mode)
    batches = Batches(shape, options.device, options.token_file)
    seconds, losses = [], []
    with attention_kernels(attention):
        for step in range(options.warmup + options.steps):
            synchronize(options.device)
            start = time.perf_counter()
            losses.append(peer_models.train_step(model, forward, optimizer, batches.next(), precision))
            synchronize(options.device)
            if step >= options.warmup:
                seconds.append(time.perf_counter() - start)
    tokens = shape.global_batch * shape.tokens
    return {"micro_batch": shape.micro_batch, "parameters": peer_models.parameter_count(model), "step_s": seconds, "loss": losses,
            "median_tokens_per_s": tokens / statistics.median(seconds),
            "used_bytes": torch.cuda.max_memory_reserved() if options.device == "cuda" else 0}


def measure_what_fits(shape, precision, mode, attention, options):
    """With half the micro-batch, and as many more of them, where memory does not suffice."""
    way = {"precision": precision, "mode": mode, "attention": attention}
    while True:
        try:
            return way | measure(shape, precision, mode, attention, options)
        except torch.OutOfMemoryError:
            if shape.micro_batch == 1:
                return way | {"error": "out of memory"}
            shape = dataclasses.replace(shape, micro_batch=shape.micro_batch // 2)
        except Exception as problem:  # pylint: disable=broad-except  # of compilers and kernels: any
            return way | {"error": f"{type(problem).__name__}: {problem}"[:300]}
        finally:
            torch.compiler.reset()
            gc.collect()
            if options.device == "cuda":
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()


def shape_of(options):
    shape = shapes.SHAPES["tiny" if options.tiny else options.model]
    asked = {"tokens": options.tokens, "micro_batch": options.micro_batch, "global_batch": options.global_batch}
    shape = dataclasses.replace(shape, **{key: value for key, value in asked.items() if value})
    if shape.global_batch % shape.micro_batch:
        raise SystemExit("peer.py: --global-batch is no multiple of --micro-batch")
    return shape


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gpt2-124m", choices=list(shapes.SHAPES))
    parser.add_argument("--tokens", type=int, default=0, help="of a sequence; 0: what the model has")
    parser.add_argument("--micro-batch", type=int, default=0, help="sequences of a forward pass; 0: the model's")
    parser.add_argument("--global-batch", type=int, default=0, help="sequences of a step; 0: the model's")
    parser.add_argument("--token-file", help="prefix of a token file to train on; without: random tokens")
    parser.add_argument("--precisions", nargs="+", default=list(PRECISIONS), choices=PRECISIONS)
    parser.add_argument("--modes", nargs="+", default=["default", "max-autotune"], choices=MODES, help="of torch.compile")
    parser.add_argument("--attentions", nargs="+", default=list(ATTENTIONS), choices=ATTENTIONS)
    parser.add_argument("--warmup", type=int, default=10, help="steps before the clock counts")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--tiny", action="store_true", help="a tiny model, on the CPU if need be: to try the program")
    parser.add_argument("--json", type=pathlib.Path, help="where to write the result; standard output by default")
    options = parser.parse_args()
    options.device = "cuda" if torch.cuda.is_available() else "cpu"
    if options.device == "cpu" and not options.tiny:
        raise SystemExit("peer.py: this PyTorch sees no GPU (--tiny tries the program without)")

    torch.set_float32_matmul_precision("high")
    shape = shape_of(options)
    ways = itertools.product(options.precisions, options.modes, options.attentions)
    runs = [measure_what_fits(shape, *way, options) for way in ways]
    good = [run for run in runs if "error" not in run]
    result = {
        "peer": f"PyTorch {torch.__version__}",
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "CPU",
        "model": "tiny" if options.tiny else options.model,
        "batch": shape.global_batch,
        "tokens": shape.tokens,
        "data": options.token_file or "random",
        "runs": runs,
        "best": max(good, key=lambda run: run["median_tokens_per_s"]) if good else None,
    }
    text = json.dumps(result, indent=2) + "\n"
    if options.json:
        options.json.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
