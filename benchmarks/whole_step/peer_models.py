# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""The models that fourfold is measured beside, as one writes them in PyTorch, and a training step of theirs. Needs only torch."""
import contextlib

import torch
from torch import nn
from torch.nn import functional as F


class Gpt2Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.heads = shape.heads
        self.norm_1 = nn.LayerNorm(shape.hidden)
        self.qkv = nn.Linear(shape.hidden, 3 * shape.hidden)
        self.attention_out = nn.Linear(shape.hidden, shape.hidden)
        self.norm_2 = nn.LayerNorm(shape.hidden)
        self.up = nn.Linear(shape.hidden, shape.ffn)
        self.down = nn.Linear(shape.ffn, shape.hidden)

    def forward(self, x):
        batch, tokens, hidden = x.shape
        q, k, v = (part.view(batch, tokens, self.heads, hidden // self.heads).transpose(1, 2)
                   for part in self.qkv(self.norm_1(x)).split(hidden, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention_out(y.transpose(1, 2).reshape(batch, tokens, hidden))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """Learned positions, pre-norm blocks, logits tied to the embedding; no dropout."""

    def __init__(self, shape):
        super().__init__()
        self.token = nn.Embedding(shape.vocab, shape.hidden)
        self.position = nn.Embedding(shape.tokens, shape.hidden)
        self.blocks = nn.ModuleList(Gpt2Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.hidden)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.token.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class LlamaBlock(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = shape.heads, shape.kv_heads, shape.hidden // shape.heads
        self.norm_1 = nn.RMSNorm(shape.hidden, eps=1e-5)
        self.qkv = nn.Linear(shape.hidden, (shape.heads + 2 * shape.kv_heads) * self.head_dim, bias=False)
        self.attention_out = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.norm_2 = nn.RMSNorm(shape.hidden, eps=1e-5)
        self.gate_up = nn.Linear(shape.hidden, 2 * shape.ffn, bias=False)
        self.down = nn.Linear(shape.ffn, shape.hidden, bias=False)

    def forward(self, x, cosine, sine):
        batch, tokens, hidden = x.shape
        heads = self.qkv(self.norm_1(x)).view(batch, tokens, -1, self.head_dim).transpose(1, 2)
        q, k, v = heads.split((self.heads, self.kv_heads, self.kv_heads), dim=1)
        q, k = rotated(q, cosine, sine), rotated(k, cosine, sine)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.kv_heads)
        x = x + self.attention_out(y.transpose(1, 2).reshape(batch, tokens, hidden))
        gate, up = self.gate_up(self.norm_2(x)).chunk(2, dim=2)
        return x + self.down(F.silu(gate) * up)


def rotated(x, cosine, sine):
    low, high = x.chunk(2, dim=3)
    cosine, sine = cosine.to(x.dtype), sine.to(x.dtype)
    return torch.cat((low * cosine - high * sine, high * cosine + low * sine), dim=3)


class Llama(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.token = nn.Embedding(shape.vocab, shape.hidden)
        self.blocks = nn.ModuleList(LlamaBlock(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, eps=1e-5)
        self.head = nn.Linear(shape.hidden, shape.vocab, bias=False)
        half = shape.hidden // shape.heads // 2
        angle = torch.outer(torch.arange(shape.tokens).float(), 500000.0 ** (-torch.arange(half).float() / half))
        self.register_buffer("cosine", angle.cos(), persistent=False)
        self.register_buffer("sine", angle.sin(), persistent=False)

    def forward(self, tokens, targets):
        x = self.token(tokens)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def make_model(shape, precision, device):
    """precision: "f32", "bf16-autocast" over f32 weights, or "bf16-weights"."""
    torch.manual_seed(1)
    with torch.device(device):
        model = (Gpt2 if shape.family == "gpt2" else Llama)(shape)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    return model.to(torch.bfloat16) if precision == "bf16-weights" else model


def parameter_count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def make_optimizer(model):
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    return torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                             lr=1e-4, betas=(0.9, 0.95), fused=True)


def train_step(model, forward, optimizer, micro_batches, precision):
    """Forward, backward, clipping by global norm and AdamW, as `fourfold train` does it. The loss, which is waited for."""
    total = 0.0
    for tokens, targets in micro_batches:
        with torch.autocast(tokens.device.type, torch.bfloat16) if precision == "bf16-autocast" else contextlib.nullcontext():
            loss = forward(tokens, targets) / len(micro_batches)
        loss.backward()
        total = total + loss.detach()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return total.item()
