#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Models go to transformers and llm.c and come from there: the same weights, and the same logits to 1e-5.
# Needs a Python with transformers and h5py, named by FOURFOLD_TEST_PYTHON. Usage: transformers.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
python=${FOURFOLD_TEST_PYTHON:-}
[[ -n $python ]] && "$python" -c 'import h5py, transformers' 2>/dev/null || exit 77
begin "$1"
peer() { "$python" "$SOURCE_DIR/tests/integration/transformers_peer.py" "$@"; }
# agrees WHAT...: the peer finds that it is so, and says how well.
agrees() {
  expect_exit 0 peer "$@"
  cat "$output"
}

expect_exit 0 peer tokens tokens.bin 267 200

# transformers' models, imported, compute the same; exported again, they are the same, also where transformers computes.
cases=(gpt2-tied gpt2-untied gpt2-square gpt2-square-published gpt2-tied-bf16 llama-untied llama-tied llama-scaled
  llama-scaled-unsaid llama-linear llama-untied-bf16 qwen2-tied gpt2-silu llama-geglu-biased smollm3 smollm3-every)
expect_exit 0 peer make "${cases[@]}"
for case in "${cases[@]}"; do
  expect_exit 0 "$fourfold" ckpt import --format hf "$case" "$case.ckpt"
  expect_exit 0 "$fourfold" ckpt verify --deep "$case.ckpt"
  expect_exit 0 ranks 1 evaluate --checkpoint "$case.ckpt" --data tokens.bin --logits "$case.h5"
  expect_exit 0 "$fourfold" ckpt export --format hf "$case.ckpt" "$case.back" --shard-size 60KB
  expect_exit 0 "$fourfold" ckpt import --format hf "$case.back" "$case.again"
  expect_exit 0 "$fourfold" ckpt diff "$case.ckpt" "$case.again"
done
agrees agree "${cases[@]}"

# A tokenizer of 261 tokens.
expect_exit 0 "$python" -c 'import tokenizers
bpe = tokenizers.ByteLevelBPETokenizer()
bpe.train_from_iterator(["the the and and "] * 9, vocab_size=261, special_tokens=["<|endoftext|>"])
bpe.save("small.json")'

# A model of our own, from a mesh with every axis that cuts tensors, in the types of inference.
cat >run.toml <<'END'
[model]
layers = 3
hidden = 48
heads = 6
vocab = 267
context = 24
[optim]
lr = 0.1
warmup_steps = 0
[train]
global_batch = 4
micro_batch = 1
steps = 6
[data]
train = ["tokens.bin"]
tokenizer = "byte"
[log]
dir = "run"
END
expect_exit 0 ranks 4 train run.toml --set mesh.tp=2 --set mesh.zero=3
expect_exit 0 ranks 1 evaluate --checkpoint run/checkpoints --data tokens.bin --logits run.h5
expect_exit 0 "$fourfold" ckpt export --format hf run/checkpoints ours --vocab-multiple 64
agrees logits ours run.h5
# Its tokenizer, and one of merges; generation stops at the end of text.
agrees tokenizer ours "$SOURCE_DIR/README.md"
expect_exit 0 "$fourfold" ckpt export --format hf run/checkpoints ours-bpe --tokenizer small.json --allow-mixed-tokenizers
agrees tokenizer ours-bpe "$SOURCE_DIR/README.md"
expect_exit 0 "$fourfold" ckpt export --format hf run/checkpoints ours-bf16 --dtype bf16
expect_exit 0 "$python" -c 'import safetensors.torch, torch
exact, rounded = (safetensors.torch.load_file(f"{folder}/model.safetensors") for folder in ("ours", "ours-bf16"))
for name, tensor in rounded.items():
    assert tensor.dtype == torch.bfloat16, name
    assert torch.equal(tensor, exact[name][: len(tensor)].bfloat16()), name
assert len(exact["transformer.wte.weight"]) == 320 and not exact["transformer.wte.weight"][267:].any()'

# llm.c: its file, imported, computes as transformers does; ours is the one that train_gpt2.py would write.
expect_exit 0 peer to-llmc gpt2-square model.bin
expect_exit 0 "$fourfold" ckpt import --format llm.c model.bin llmc.ckpt
expect_exit 0 "$fourfold" ckpt diff llmc.ckpt gpt2-square.ckpt
expect_exit 0 ranks 1 evaluate --checkpoint llmc.ckpt --data tokens.bin --logits llmc.h5
agrees logits gpt2-square llmc.h5
expect_exit 0 "$fourfold" ckpt export --format llm.c gpt2-square.ckpt back.bin
expect cmp model.bin back.bin
expect_exit 0 "$fourfold" ckpt export --format llm.c run/checkpoints ours.bin
expect_exit 0 "$fourfold" ckpt export --format hf run/checkpoints ours.hf
expect_exit 0 peer same-llmc ours.hf ours.bin

expectations_met
