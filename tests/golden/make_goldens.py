#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden numbers that tests/golden compares the models with.

The numbers come from Hugging Face transformers on PyTorch, CPU, f32: logits, loss, the gradient of every parameter, and
ten AdamW steps with clipping and a weight decay mask. Initial weights are not stored: they are Philox numbers that both
sides draw (see `draw`), under fourfold's logical names.

    python3 make_goldens.py            # rewrites <case>.json and <case>.f32 beside this file

A case is one JSON file (configuration, tokens, losses, and a table of tensors) and one file of little-endian f32 numbers.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
import torch
import transformers

PINNED = {"torch": "2.15.0", "transformers": "5.23.0"}
STEPS = 10
IGNORED = -100
M64 = (1 << 64) - 1

# Our keys of [model] per case, and the micro-batch.
CASES = {
    "gpt2_odd_heads": dict(
        model=dict(family="gpt2", layers=2, hidden=15, heads=3, ffn=60, vocab=31, context=12, tie_embeddings=True),
        sequences=2, tokens=7),
    "gpt2_untied": dict(
        model=dict(family="gpt2", layers=3, hidden=20, heads=5, ffn=28, vocab=37, context=16, tie_embeddings=False),
        sequences=3, tokens=13),
    "gpt2_one_layer": dict(
        model=dict(family="gpt2", layers=1, hidden=32, heads=2, ffn=128, vocab=64, context=9, tie_embeddings=True,
                   norm_epsilon=1e-3),
        sequences=1, tokens=9),
    "llama_grouped": dict(
        model=dict(family="llama", layers=2, hidden=30, heads=3, kv_heads=1, head_dim=10, ffn=23, vocab=33, context=11,
                   tie_embeddings=False, norm_epsilon=1e-5),
        sequences=2, tokens=11),
    "llama_scaled": dict(
        model=dict(family="llama", layers=2, hidden=24, heads=3, kv_heads=3, head_dim=10, ffn=40, vocab=29, context=64,
                   tie_embeddings=True, norm_epsilon=1e-6, rope_theta=100.0,
                   rope_scaling=dict(kind="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                     original_context=32)),
        sequences=1, tokens=37),
    "llama_linear": dict(
        model=dict(family="llama", layers=3, hidden=24, heads=6, kv_heads=2, head_dim=4, ffn=31, vocab=41, context=32,
                   tie_embeddings=False, rope_scaling=dict(kind="linear", factor=2.5)),
        sequences=2, tokens=19),
    "llama_qkv_bias": dict(
        model=dict(family="llama", layers=2, hidden=18, heads=9, kv_heads=3, head_dim=2, ffn=27, vocab=35, context=16,
                   tie_embeddings=True, qkv_bias=True),
        sequences=3, tokens=5),
    "llama_qk_norm": dict(
        model=dict(family="llama", layers=2, hidden=24, heads=6, kv_heads=2, head_dim=6, ffn=27, vocab=37, context=16,
                   tie_embeddings=False, qk_norm=True, norm_epsilon=1e-4),
        sequences=3, tokens=9),
    "gpt2_silu": dict(
        model=dict(family="gpt2", layers=2, hidden=21, heads=3, ffn=37, vocab=39, context=10, tie_embeddings=True,
                   activation="silu"),
        sequences=2, tokens=9),
    "llama_geglu_biases": dict(
        model=dict(family="llama", layers=2, hidden=24, heads=6, kv_heads=3, head_dim=4, ffn=29, vocab=43, context=14,
                   tie_embeddings=False, activation="gelu_tanh", biases=True),
        sequences=2, tokens=13),
    "llama_no_rope": dict(
        model=dict(family="llama", layers=5, hidden=24, heads=6, kv_heads=2, head_dim=4, ffn=31, vocab=37, context=20,
                   tie_embeddings=True, rope_theta=50.0, no_rope_interval=2),
        sequences=2, tokens=17),
}


# -- random numbers as src/base has them ------------------------------------------------------------------------------


def mix64(value):
    value = (value + 0x9E3779B97F4A7C15) & M64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & M64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & M64
    return value ^ (value >> 31)


def name_salt(name):
    digest = 0xCBF29CE484222325
    for byte in name.encode():
        digest = ((digest ^ byte) * 0x100000001B3) & M64
    return digest


def normal(seed, name, count):
    """normal_float(philox_key(seed, initial_weight, name_salt(name)), 0 .. count - 1)"""
    mixed = mix64(mix64(seed) ^ (1 << 56) ^ mix64((name_salt(name) + 0x51ED2701) & M64))
    k0, k1 = mixed & 0xFFFFFFFF, mixed >> 32
    counter = np.arange(count, dtype=np.uint64)
    low = np.uint64(0xFFFFFFFF)
    c0, c1 = counter & low, counter >> np.uint64(32)
    c2, c3 = np.zeros_like(c0), np.zeros_like(c0)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = ((p1 >> np.uint64(32)) ^ c1 ^ np.uint64(k0), p1 & low,
                          (p0 >> np.uint64(32)) ^ c3 ^ np.uint64(k1), p0 & low)
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF

    def uniform(word):
        return ((word >> np.uint64(9)).astype(np.float32) + np.float32(0.5)) * np.float32(1 / 8388608)

    radius, angle = uniform(c0).astype(np.float64), uniform(c1).astype(np.float64)
    return (np.sqrt(-2.0 * np.log(radius)) * np.cos(2.0 * np.pi * angle)).astype(np.float32)


def draw(seed, name, shape):
    """Initial weights of the goldens: larger than a training run's, so that every path carries weight."""
    values = normal(seed, name, int(np.prod(shape))).reshape(shape)
    if len(shape) == 2:
        return np.float32(0.25) * values
    values = np.float32(0.2) * values
    return np.float32(1) + values if name.endswith("norm.weight") else values


# -- the peers ---------------------------------------------------------------------------------------------------------


def gpt2(m):
    config = transformers.GPT2Config(
        vocab_size=m["vocab"], n_positions=m["context"], n_embd=m["hidden"], n_layer=m["layers"], n_head=m["heads"],
        n_inner=m["ffn"], activation_function=m.get("activation", "gelu_new"), resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        layer_norm_epsilon=m.get("norm_epsilon", 1e-5), tie_word_embeddings=m["tie_embeddings"],
        bos_token_id=None, eos_token_id=None, attn_implementation="eager")
    return transformers.GPT2LMHeadModel(config)


def llama(m):
    scaling = m.get("rope_scaling", {"kind": "none"})
    rope = {"rope_theta": m.get("rope_theta", 10000.0), "rope_type": "default"}
    if scaling["kind"] == "linear":
        rope |= {"rope_type": "linear", "factor": scaling["factor"]}
    elif scaling["kind"] == "llama3":
        rope |= {"rope_type": "llama3", "factor": scaling["factor"], "low_freq_factor": scaling["low_freq_factor"],
                 "high_freq_factor": scaling["high_freq_factor"],
                 "original_max_position_embeddings": scaling["original_context"]}
    shared = dict(
        vocab_size=m["vocab"], hidden_size=m["hidden"], intermediate_size=m["ffn"], num_hidden_layers=m["layers"],
        num_attention_heads=m["heads"], num_key_value_heads=m["kv_heads"], head_dim=m["head_dim"],
        max_position_embeddings=m["context"], rms_norm_eps=m.get("norm_epsilon", 1e-5), rope_parameters=rope,
        tie_word_embeddings=m["tie_embeddings"], bos_token_id=None, eos_token_id=None, attn_implementation="eager")
    if m.get("qkv_bias"):  # Qwen 2 is a Llama with these biases
        return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**shared))
    if m.get("qk_norm"):  # and Qwen 3 one with these norms
        return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**shared, attention_bias=False))
    if m.get("no_rope_interval"):  # SmolLM 3 one without positions in some layers
        return transformers.SmolLM3ForCausalLM(
            transformers.SmolLM3Config(**shared, no_rope_layer_interval=m["no_rope_interval"], pad_token_id=None))
    has_biases = m.get("biases", False)
    activation = {"gelu_tanh": "gelu_pytorch_tanh", "silu": "silu"}[m.get("activation", "silu")]
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **shared, attention_bias=has_biases, mlp_bias=has_biases, hidden_act=activation))


def views(m, net):
    """Our logical name -> (list of (peer parameter, function that gives our orientation of it or of its gradient))."""
    named = dict(net.named_parameters())
    table = {}

    def put(ours, theirs, turn=lambda t: t):
        table[ours] = (named[theirs], turn)

    if m["family"] == "gpt2":
        d = m["hidden"]
        put("embedding.token.weight", "transformer.wte.weight")
        put("embedding.position.weight", "transformer.wpe.weight")
        for i in range(m["layers"]):
            for part in ("weight", "bias"):
                turn = (lambda t: t.T) if part == "weight" else (lambda t: t)  # Conv1D is [in, out]
                put(f"layers.{i}.attn_norm.{part}", f"transformer.h.{i}.ln_1.{part}")
                for j, which in enumerate("qkv"):
                    put(f"layers.{i}.attn.{which}_proj.{part}", f"transformer.h.{i}.attn.c_attn.{part}",
                        lambda t, j=j, turn=turn: turn(t)[j * d:(j + 1) * d])
                put(f"layers.{i}.attn.o_proj.{part}", f"transformer.h.{i}.attn.c_proj.{part}", turn)
                put(f"layers.{i}.mlp_norm.{part}", f"transformer.h.{i}.ln_2.{part}")
                put(f"layers.{i}.mlp.up_proj.{part}", f"transformer.h.{i}.mlp.c_fc.{part}", turn)
                put(f"layers.{i}.mlp.down_proj.{part}", f"transformer.h.{i}.mlp.c_proj.{part}", turn)
        put("final_norm.weight", "transformer.ln_f.weight")
        put("final_norm.bias", "transformer.ln_f.bias")
    else:
        put("embedding.token.weight", "model.embed_tokens.weight")
        for i in range(m["layers"]):
            put(f"layers.{i}.attn_norm.weight", f"model.layers.{i}.input_layernorm.weight")
            for which in "qkvo":
                put(f"layers.{i}.attn.{which}_proj.weight", f"model.layers.{i}.self_attn.{which}_proj.weight")
                if m.get("biases") or (m.get("qkv_bias") and which != "o"):
                    put(f"layers.{i}.attn.{which}_proj.bias", f"model.layers.{i}.self_attn.{which}_proj.bias")
            if m.get("qk_norm"):
                for which in "qk":
                    put(f"layers.{i}.attn.{which}_norm.weight", f"model.layers.{i}.self_attn.{which}_norm.weight")
            put(f"layers.{i}.mlp_norm.weight", f"model.layers.{i}.post_attention_layernorm.weight")
            for which in ("gate", "up", "down"):
                for part in ("weight", "bias") if m.get("biases") else ("weight",):
                    put(f"layers.{i}.mlp.{which}_proj.{part}", f"model.layers.{i}.mlp.{which}_proj.{part}")
        put("final_norm.weight", "model.norm.weight")
    if not m["tie_embeddings"]:
        put("lm_head.weight", "lm_head.weight")
    return table


# -- one case ----------------------------------------------------------------------------------------------------------


def batches(case, seed):
    """STEPS batches: random tokens, targets with holes."""
    generator = np.random.default_rng(seed)
    shape = (case["sequences"], case["tokens"])
    result = []
    for _ in range(STEPS):
        tokens = generator.integers(0, case["model"]["vocab"], shape)
        targets = generator.integers(0, case["model"]["vocab"], shape)
        targets[generator.random(shape) < 0.2] = IGNORED
        result.append((tokens, targets))
    return result


def loss_of(net, tokens, targets):
    logits = net(input_ids=torch.tensor(tokens)).logits
    loss = torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), torch.tensor(targets).reshape(-1), ignore_index=IGNORED)
    return logits, loss


def make(name, case, seed, folder):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    m = case["model"]
    net = (gpt2 if m["family"] == "gpt2" else llama)(m).float().eval()
    table = views(m, net)
    covered = {}
    with torch.no_grad():
        for ours, (parameter, turn) in table.items():
            part = turn(parameter)
            part.copy_(torch.from_numpy(draw(seed, ours, tuple(part.shape))))
            covered[id(parameter)] = covered.get(id(parameter), 0) + part.numel()
    for peer_name, parameter in net.named_parameters():
        assert covered.get(id(parameter)) == parameter.numel(), f"{name}: {peer_name} is not covered"

    tensors, numbers = [], []

    def keep(kind, tensor_name, tensor):
        values = np.array(tensor.detach().numpy(), dtype="<f4", order="C")  # a copy: gradients are clipped in place
        tensors.append({"kind": kind, "name": tensor_name, "shape": list(values.shape),
                        "offset": int(sum(n.size for n in numbers))})
        numbers.append(values.reshape(-1))

    optimizer_options = dict(lr=3e-3, betas=[0.9, 0.95], eps=1e-8, weight_decay=0.1, clip=1.0)
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in net.parameters() if p.dim() == 2], "weight_decay": optimizer_options["weight_decay"]},
         {"params": [p for p in net.parameters() if p.dim() != 2], "weight_decay": 0.0}],
        lr=optimizer_options["lr"], betas=tuple(optimizer_options["betas"]), eps=optimizer_options["eps"])
    all_batches = batches(case, seed)
    losses, norms = [], []
    for step, (tokens, targets) in enumerate(all_batches):
        optimizer.zero_grad()
        logits, loss = loss_of(net, tokens, targets)
        loss.backward()
        if step == 0:
            keep("logits", "logits", logits)
            for ours, (parameter, turn) in table.items():
                keep("gradient", ours, turn(parameter.grad))
        norms.append(float(torch.nn.utils.clip_grad_norm_(net.parameters(), optimizer_options["clip"])))
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        for ours in ("embedding.token.weight", "layers.0.attn.q_proj.weight", "layers.0.mlp.down_proj.weight",
                     "final_norm.weight"):
            parameter, turn = table[ours]
            keep("final_weight", ours, turn(parameter))

    probe = normal(seed, "embedding.token.weight", 8)
    document = {
        "made_by": {"script": "tests/golden/make_goldens.py", "torch": torch.__version__,
                    "transformers": transformers.__version__, "numpy": np.__version__},
        "seed": seed,
        "model": m,
        "sequences": case["sequences"],
        "tokens": case["tokens"],
        "optimizer": optimizer_options,
        "token": [t.reshape(-1).tolist() for t, _ in all_batches],
        "target": [t.reshape(-1).tolist() for _, t in all_batches],
        "loss": losses,
        "gradient_norm": norms,
        "normal_bits": [int(bits) for bits in probe.view(np.uint32)],
        "tensors": tensors,
    }
    text = json.dumps(document)
    for key in document:  # one line per key: small, and a change shows where it is
        text = text.replace(f', "{key}":', f',\n"{key}":', 1)
    (folder / f"{name}.json").write_text(text + "\n")
    np.concatenate(numbers).astype("<f4").tofile(folder / f"{name}.f32")
    print(f"{name}: {sum(p.numel() for p in net.parameters())} parameters, losses {losses[0]:.6f} .. {losses[-1]:.6f}, "
          f"gradient norms {norms[0]:.3f} .. {norms[-1]:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(__file__).parent, help="where to write")
    parser.add_argument("--any-version", action="store_true", help="do not insist on the pinned versions")
    options = parser.parse_args()
    have = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
    if have != PINNED and not options.any_version:
        sys.exit(f"make_goldens.py: found {have}, the numbers are pinned to {PINNED}: install these or say --any-version")
    for index, (name, case) in enumerate(CASES.items()):
        make(name, case, 1000 + index, options.folder)


if __name__ == "__main__":
    main()
