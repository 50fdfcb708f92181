#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Writes hf/: models as transformers' save_pretrained writes them, and a safetensors file with all sorts of types.

The models are those of make_goldens.py, with the same weights: Philox numbers under fourfold's logical names, so that a
reader of the folder knows what every element has to be. Of some only config.json is kept.

    python3 make_hf_goldens.py
"""

import pathlib
import shutil

import safetensors.torch
import torch
from make_goldens import CASES, draw, gpt2, llama, views

FOLDER = pathlib.Path(__file__).parent / "hf"
WITH_WEIGHTS = {"gpt2_odd_heads": "12KB", "gpt2_untied": "5GB", "llama_grouped": "5GB", "llama_qkv_bias": "5GB",
                "llama_qk_norm": "5GB", "llama_geglu_biases": "5GB", "llama_no_rope": "5GB"}


def save(name, seed, case):
    model = case["model"]
    net = (gpt2 if model["family"] == "gpt2" else llama)(model).float()
    with torch.no_grad():
        for ours, (parameter, turn) in views(model, net).items():
            part = turn(parameter)
            part.copy_(torch.from_numpy(draw(seed, ours, tuple(part.shape))))
    folder = FOLDER / name
    net.save_pretrained(folder, max_shard_size=WITH_WEIGHTS.get(name, "5GB"))
    for file in folder.iterdir():
        if file.name == "generation_config.json" or (name not in WITH_WEIGHTS and file.name != "config.json"):
            file.unlink()


def save_types():
    tensors = {
        "odd": torch.arange(6, dtype=torch.float32).reshape(2, 3) / 3,
        "half": torch.tensor([1.5, -2.0, 65504.0], dtype=torch.float16),
        "brain": torch.tensor([[3.140625], [-1e30]], dtype=torch.bfloat16),
        "scalar": torch.tensor(-0.1, dtype=torch.float64),
        "empty": torch.empty((0, 4), dtype=torch.int32),
        "mask": torch.tensor([True, False, True]),
        "tiny": torch.tensor([1.0, 2.0], dtype=torch.float8_e4m3fn),
        "caf\u00e9 \"quoted\"": torch.tensor([7], dtype=torch.int64),
    }
    safetensors.torch.save_file(tensors, FOLDER / "types.safetensors", metadata={"format": "pt", "note": "caf\u00e9"})


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for index, (name, case) in enumerate(CASES.items()):
        save(name, 1000 + index, case)
    save_types()


if __name__ == "__main__":
    main()
