#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch reaches on the CPU for a whole training step of the GPT-2 124M shape.

A step is forward, backward, clipping by global norm and fused AdamW over random tokens, as `fourfold train` does it.
Writes one JSON object; needs only torch. Nothing else should run on the machine meanwhile.
"""
import argparse
import json
import platform
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY = 50257
CONTEXT = 1024
LAYERS = 12
HEADS = 12
HIDDEN = 768


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1 = nn.LayerNorm(HIDDEN)
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.attention_out = nn.Linear(HIDDEN, HIDDEN)
        self.norm_2 = nn.LayerNorm(HIDDEN)
        self.up = nn.Linear(HIDDEN, 4 * HIDDEN)
        self.down = nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = (
            part.view(batch, tokens, HEADS, HIDDEN // HEADS).transpose(1, 2)
            for part in self.qkv(self.norm_1(x)).split(HIDDEN, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention_out(y.transpose(1, 2).reshape(batch, tokens, HIDDEN))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """Learned positions, pre-norm blocks, logits tied to the embedding; no dropout."""

    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, HIDDEN)
        self.position = nn.Embedding(CONTEXT, HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(HIDDEN)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.token.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def measure(precision, mode, options):
    torch.manual_seed(1)
    model = Gpt2()
    if precision == "bf16-weights":
        model = model.to(torch.bfloat16)
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
        lr=1e-4, betas=(0.9, 0.95), fused=True)
    forward = torch.compile(model) if mode == "compile" else model
    generator = torch.Generator().manual_seed(2)
    seconds = []
    losses = []
    for step in range(options.warmup + options.steps):
        data = torch.randint(VOCABULARY, (options.batch, options.tokens + 1), generator=generator)
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16-autocast"):
            loss = forward(data[:, :-1], data[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        passed = time.perf_counter() - start
        losses.append(loss.item())
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
