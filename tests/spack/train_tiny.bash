#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Prepares a text, trains a tiny model on it for a few steps, evaluates the checkpoint.
# Usage: train_tiny.bash FOURFOLD FOLDER
set -euo pipefail
fourfold=$1
cd "$2"
for verse in {1..400}; do echo "verse $verse: the quick brown fox jumps over the lazy dog"; done >text.txt
"$fourfold" data prepare --tokenizer byte --progress none --output tokens text.txt
cat >run.toml <<'END'
[model]
layers = 2
hidden = 32
heads = 2
vocab = 257
context = 32
[train]
global_batch = 4
micro_batch = 2
steps = 5
[data]
train = ["tokens"]
[log]
dir = "run"
END
"$fourfold" train run.toml --progress plain
"$fourfold" evaluate --checkpoint run/checkpoints --data tokens --samples 8
