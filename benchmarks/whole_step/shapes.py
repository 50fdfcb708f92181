# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""The models that are measured, as gpu_step has them."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Shape:
    family: str  # gpt2: learned positions, tied head; llama: rotary positions, a head of its own
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    tokens: int  # of a sequence
    micro_batch: int = 4  # sequences of a forward pass
    global_batch: int = 4  # of a step


SHAPES = {
    "gpt2-124m": Shape("gpt2", 12, 768, 12, 12, 3072, 50304, 1024, 64, 64),
    "gpt2-350m": Shape("gpt2", 24, 1024, 16, 16, 4096, 50304, 1024, 32, 64),
    "gpt2-1558m": Shape("gpt2", 48, 1600, 25, 25, 6400, 50304, 1024, 16, 64),
    "llama-8b-layers": Shape("llama", 8, 4096, 32, 8, 14336, 32000, 4096, 2, 16),
    "tiny": Shape("llama", 2, 32, 4, 2, 64, 320, 16, 4, 8),
}
