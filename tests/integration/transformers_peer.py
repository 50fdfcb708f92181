#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""The other side of tests/integration/transformers.bash: transformers, and llm.c's files as train_gpt2.py writes them.

    transformers_peer.py make CASE...               a small random model each, by save_pretrained
    transformers_peer.py tokens FILE VOCAB COUNT    random tokens, as llm.c keeps them
    transformers_peer.py agree CASE...              CASE.back has the weights of CASE, bit for bit, and the logits of
                                                   both are those that `fourfold evaluate --logits` wrote to CASE.h5
    transformers_peer.py logits FOLDER FILE.h5      the same of one model
    transformers_peer.py tokenizer FOLDER TEXT     AutoTokenizer has the same tokens as the tokenizer.json of FOLDER by the
                                                   tokenizers library, or as the bytes; and generate() stops at its end
                                                   of text
    transformers_peer.py to-llmc FOLDER FILE        a GPT-2 as a file of llm.c
    transformers_peer.py same-llmc FOLDER FILE      such a file has the weights of a GPT-2
"""

import json
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import h5py
import numpy as np
import safetensors.torch
import tokenizers
import torch
import transformers

BAR = 1e-5
GPT2 = dict(n_embd=36, n_layer=3, n_head=3, n_inner=76, n_positions=24, vocab_size=267, bos_token_id=None,
            eos_token_id=None)
LLAMA = dict(hidden_size=42, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=10,
             intermediate_size=52, max_position_embeddings=24, vocab_size=267, bos_token_id=None, eos_token_id=None)
ROPE3 = dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
             original_max_position_embeddings=12)
CASES = {
    "gpt2-tied": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2)),
    "gpt2-untied": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**GPT2 | dict(tie_word_embeddings=False, layer_norm_epsilon=1e-4))),
    "gpt2-square": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2 | dict(n_inner=None))),
    "llama-untied": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)),
    "llama-tied": lambda: transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**LLAMA | dict(tie_word_embeddings=True, num_key_value_heads=6))),
    "llama-scaled": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA, rope_parameters=ROPE3)),
    "llama-linear": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **LLAMA, rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=3.0))),
    "gpt2-silu": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**GPT2 | dict(activation_function="silu"))),
    "llama-geglu-biased": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **LLAMA, hidden_act="gelu_pytorch_tanh", attention_bias=True, mlp_bias=True)),
    "smollm3": lambda: transformers.SmolLM3ForCausalLM(
        transformers.SmolLM3Config(**LLAMA, no_rope_layer_interval=2, pad_token_id=None)),
    "smollm3-every": lambda: transformers.SmolLM3ForCausalLM(
        transformers.SmolLM3Config(**LLAMA, no_rope_layers=[0, 0, 0], attention_bias=True, mlp_bias=True, pad_token_id=None)),
    "qwen2-tied": lambda: transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(**LLAMA | dict(tie_word_embeddings=True))),
}


def make_one(case):
    published, half, unsaid = (case.endswith(suffix) for suffix in ("-published", "-bf16", "-unsaid"))
    kind = case.removesuffix("-published").removesuffix("-bf16").removesuffix("-unsaid")
    torch.manual_seed(sorted(CASES).index(kind))
    net = CASES[kind]()
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.normal_(0, 0.2)
            if parameter.dim() == 1 and name.endswith("weight"):
                parameter.add_(1)
    if half:
        net = net.bfloat16()
    net.save_pretrained(case, max_shard_size="100KB" if case == "llama-untied" else "5GB")
    if unsaid:  # the original context is the model's then
        file = pathlib.Path(case) / "config.json"
        config = json.loads(file.read_text())
        del config["rope_parameters"]["original_max_position_embeddings"]
        file.write_text(json.dumps(config | {"note": float("inf")}))
    if published:  # as openai-community/gpt2 is: no prefix, masks among the weights, config.json of older days
        state = {name.removeprefix("transformer."): tensor.contiguous() for name, tensor in net.state_dict().items()
                 if name != "lm_head.weight"}
        for layer in range(GPT2["n_layer"]):
            state[f"h.{layer}.attn.bias"] = torch.tril(torch.ones(24, 24)).view(1, 1, 24, 24)
        safetensors.torch.save_file(state, pathlib.Path(case) / "model.safetensors", metadata={"format": "pt"})


def make(*cases):
    for case in cases:
        make_one(case)


def tokens(file, vocab, count):
    header = np.zeros(256, "<i4")
    header[:3] = 20240520, 1, int(count)
    body = np.random.default_rng(5).integers(0, int(vocab), int(count)).astype("<u2")
    pathlib.Path(file).write_bytes(header.tobytes() + body.tobytes())


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                             attn_implementation="eager").eval()


def error_of(folder, file):
    """The largest difference of logits, relative to the largest logit."""
    with h5py.File(file) as ours:
        mine, context = ours["logits"][:], ours["tokens"][:]
    with torch.no_grad():
        theirs = load(folder)(input_ids=torch.tensor(context).long()).logits.numpy()[..., :mine.shape[-1]]
    assert mine.shape == theirs.shape and np.abs(theirs).max() > 1, (mine.shape, theirs.shape)
    error = np.abs(mine - theirs).max() / np.abs(theirs).max()
    print(f"{folder}: logits of {mine.shape[0]} x {mine.shape[1]} tokens up to {np.abs(theirs).max():.3g}, "
          f"largest difference {error:.2e} of that")
    return error


def logits(folder, file):
    sys.exit(0 if error_of(folder, file) <= BAR else 1)


def agree(*cases):
    for case in cases:
        left, right = (load(folder).state_dict() for folder in (case, f"{case}.back"))
        assert left.keys() == right.keys(), left.keys() ^ right.keys()
        for name, tensor in left.items():
            assert torch.equal(tensor, right[name]), (case, name)
    worst = max(error_of(folder, f"{case}.h5") for case in cases for folder in (case, f"{case}.back"))
    sys.exit(0 if worst <= BAR else 1)


class Wants(transformers.LogitsProcessor):
    """Makes one token the likeliest from a length on."""

    def __init__(self, token, length):
        self.token, self.length = token, length

    def __call__(self, input_ids, scores):
        if input_ids.shape[-1] >= self.length:
            scores[:, self.token] = scores.max() + 1
        return scores


def tokenizer(folder, file):
    text = pathlib.Path(file).read_text(encoding="utf-8")
    loaded = transformers.AutoTokenizer.from_pretrained(folder)
    ids = loaded(text, add_special_tokens=False)["input_ids"]
    assert ids == tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json").encode(text, add_special_tokens=False).ids
    assert len(loaded) > 257 or ids == list(text.encode()), ids
    assert loaded.decode(ids) == text
    net = load(folder)
    end = loaded.eos_token_id
    assert end is not None and net.config.eos_token_id == net.generation_config.eos_token_id == end
    prompt = torch.tensor([ids[:4]])
    made = net.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False,
                        logits_processor=[Wants(end, 9)], pad_token_id=end)
    assert made.shape[-1] == 10 and made[0, -1] == end, made
    print(f"{folder}: {len(ids)} tokens equal, generation stops at {end}")


def llmc_arrays(net):
    """What train_gpt2.py writes, in its order: names of GPT2LMHeadModel, Conv1D turned to [out, in]."""
    state = {name.removeprefix("transformer."): tensor.float() for name, tensor in net.state_dict().items()}
    layers, wte = net.config.n_layer, state["wte.weight"]
    padded = -(-wte.shape[0] // 128) * 128
    yield torch.nn.functional.pad(wte, (0, 0, 0, padded - wte.shape[0]))
    yield state["wpe.weight"]
    for name in ("ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight",
                 "attn.c_proj.bias", "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias",
                 "mlp.c_proj.weight", "mlp.c_proj.bias"):
        for layer in range(layers):
            tensor = state[f"h.{layer}.{name}"]
            yield tensor.T if tensor.dim() == 2 else tensor
    yield state["ln_f.weight"]
    yield state["ln_f.bias"]


def llmc_bytes(folder):
    net = load(folder)
    config = net.config
    arrays = list(llmc_arrays(net))
    header = np.zeros(256, "<i4")
    header[:8] = (20240326, 3, config.n_positions, config.vocab_size, config.n_layer, config.n_head, config.n_embd,
                  arrays[0].shape[0])
    return header.tobytes() + b"".join(array.contiguous().numpy().astype("<f4").tobytes() for array in arrays)


def to_llmc(folder, file):
    pathlib.Path(file).write_bytes(llmc_bytes(folder))


def same_llmc(folder, file):
    assert llmc_bytes(folder) == pathlib.Path(file).read_bytes()


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    verbs = {"make": make, "tokens": tokens, "logits": logits, "agree": agree, "to-llmc": to_llmc,
             "same-llmc": same_llmc, "tokenizer": tokenizer}
    verbs[sys.argv[1]](*sys.argv[2:])
