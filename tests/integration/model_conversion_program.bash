#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Checkpoints go to other programs' files and come from there, as users do it. Whether those programs agree is for
# transformers.bash. Usage: model_conversion_program.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"

prepare_text 200
cat >run.toml <<'END'
[model]
layers = 2
hidden = 32
heads = 2
vocab = 257
context = 32
[train]
global_batch = 4
micro_batch = 1
steps = 2
[data]
train = ["tokens"]
[log]
dir = "run"
END
expect_exit 0 ranks 2 train run.toml --set mesh.tp=2

# A report on a folder whose name is not UTF-8.
odd=$'lat\xe9'
cp -r run/checkpoints "$odd"
expect_exit 0 ranks 1 evaluate --checkpoint "$odd" --data tokens --json
expect python3 -m json.tool "$output"
expect_exit 0 "$fourfold" ckpt info "$odd" --json
expect python3 -m json.tool "$output"
rm -r "$odd"

# The same weights, the same loss.
loss_of() {
  expect_exit 0 ranks 1 evaluate --checkpoint "$1" --data tokens --json
  grep -o '"loss": *[0-9.e-]*' "$output"
}
expected=$(loss_of run/checkpoints)
expect grep -q '"loss": *[0-9]' <<<"$expected"
expect_exit 0 "$fourfold" ckpt export --format hf run/checkpoints hf --shard-size 20kB --dry-run
expect_stdout 'hf/model-00001-of-0000'
expect test ! -e hf
expect_exit 0 "$fourfold" ckpt export --format hf run/checkpoints hf --shard-size 20kB --progress plain
expect test -s hf/model.safetensors.index.json
expect_exit 0 "$fourfold" ckpt export --format llm.c run/checkpoints model.bin
for format in hf llm.c; do
  input=hf && [[ $format == llm.c ]] && input=model.bin
  expect_exit 73 "$fourfold" ckpt export --format "$format" run/checkpoints "$input"
  expect_stderr 'is there already'
  expect_exit 0 "$fourfold" ckpt import --format "$format" "$input" "from-$format" --dry-run
  expect_stdout '2 layers, hidden 32'
  expect test ! -e "from-$format"
  expect_exit 0 "$fourfold" ckpt import "$input" "from-$format" # a folder, or a file: that tells the format
  expect_exit 0 "$fourfold" ckpt verify --deep "from-$format"
  expect test "$(loss_of "from-$format")" = "$expected"
  expect_exit 78 "$fourfold" ckpt import --format "$format" "$input" "from-$format"
  expect_stderr 'holds checkpoints already'
done
expect_exit 0 "$fourfold" ckpt diff from-hf from-llm.c
expect_exit 1 "$fourfold" ckpt diff from-hf run/checkpoints
expect_stdout 'master  equal, bit for bit ('
expect_stdout 'exp_avg  only in B ('
expect_stdout 'exp_avg_sq  only in B ('

# Its tokenizer goes with it, and its run file begins a run, from wherever it is started.
for file in tokenizer.json tokenizer_config.json generation_config.json; do expect test -s "hf/$file"; done
expect grep -q '"eos_token_id": 256' hf/config.json
expect_exit 0 "$fourfold" data prepare --tokenizer hf/tokenizer.json --output again --append-eot text.txt
expect cmp again.bin tokens.bin
expect_exit 0 "$fourfold" ckpt export --format hf --tokenizer none run/checkpoints bare
expect test ! -e bare/tokenizer.json
expect grep -q '"eos_token_id": null' bare/config.json
expect_exit 78 "$fourfold" ckpt export --format hf --tokenizer nowhere run/checkpoints named
expect test ! -e named
cp hf/tokenizer.json gone.json
expect_exit 0 "$fourfold" ckpt import --format hf --tokenizer gone.json bare untold
expect grep -q "^tokenizer = \"$PWD/gone.json\"" untold/run.toml
rm gone.json
expect_exit 78 "$fourfold" ckpt import --format hf --tokenizer gone.json bare out
expect_stderr 'gone.json'
expect_exit 0 "$fourfold" ckpt export --format hf untold untold-hf
expect_stdout 'note   no tokenizer is written'
expect test ! -e untold-hf/tokenizer.json
for format in hf llm.c; do
  expect_exit 78 ranks 1 train "from-$format/run.toml" --set log.dir="began-$format"
  expect_stderr 'data.train'
  # The tokens of "byte", and those of the file that the export wrote for it: they are the same.
  for made in again tokens; do
    rm -rf "began-$format"
    expect_exit 0 ranks 1 train "from-$format/run.toml" --set log.dir="began-$format" --set data.train=$made \
      --set train.steps=1 --set optim.lr=1e-37 --set optim.weight_decay=0
  done
  expect_exit 0 ranks 1 evaluate --checkpoint "began-$format/checkpoints" --data again --json
  expect test "$(grep -o '"loss": *[0-9.e-]*' "$output")" = "$expected"
done
# An imported model knows its tokenizer, as one that was trained here does: by what was in its file then.
python3 -c 'import json
tokenizer = json.load(open("hf/tokenizer.json"))
vocab = tokenizer["model"]["vocab"]
vocab["a"], vocab["b"] = vocab["b"], vocab["a"]
json.dump(tokenizer, open("swapped.json", "w"))'
expect_exit 0 "$fourfold" ckpt import --format hf --tokenizer swapped.json bare from-swapped
expect_exit 78 ranks 2 evaluate --checkpoint from-swapped --data tokens
expect_stderr 'tokens.json says that byte (257 tokens) made the tokens, and'
expect_stderr "was trained on those of $PWD/swapped.json (257)"
expect_exit 0 ranks 2 evaluate --checkpoint from-swapped --data tokens --allow-mixed-tokenizers
expect_exit 0 "$fourfold" data prepare --tokenizer swapped.json --output letters --append-eot text.txt
cp hf/tokenizer.json swapped.json
expect_exit 0 ranks 2 evaluate --checkpoint from-swapped --data letters
expect_exit 0 "$fourfold" data prepare --tokenizer swapped.json --output again --append-eot text.txt
expect_exit 78 ranks 2 evaluate --checkpoint from-swapped --data again
expect_stderr ': the file has changed in between, digest byte for the tokens, '
expect_exit 78 ranks 1 sample --checkpoint from-swapped --prompt chapter --tokens 3
expect_exit 78 ranks 1 evaluate --checkpoint from-hf --data letters
# Nobody takes the default for the tokenizer of a model that came without one.
expect_exit 78 ranks 1 sample --checkpoint from-llm.c --prompt chapter --tokens 3
expect_stderr 'does not say which tokenizer its model was trained with'
expect_exit 0 ranks 1 sample --checkpoint from-llm.c --prompt chapter --tokens 3 --tokenizer byte
expect_exit 0 "$fourfold" ckpt export --format hf from-llm.c untold-2
expect_stdout 'note   no tokenizer is written'
expect grep -q '"eos_token_id": null' untold-2/config.json
# Nor the default for a run that cannot have been trained with it.
expect_exit 0 ranks 1 train run.toml --set log.dir=wide --set model.vocab=600 --set train.steps=1
expect_exit 0 "$fourfold" ckpt export --format hf wide/checkpoints untold-3
expect_stdout 'data.tokenizer = "byte" has 257 tokens, and model.vocab = 600 is too large for it'
expect test ! -e untold-3/tokenizer.json
expect_exit 0 "$fourfold" ckpt export --format hf --tokenizer byte wide/checkpoints told-3
expect test -e told-3/tokenizer.json
# One that cannot be used is not taken over unopened.
cp -r bare unreadable && echo '{"model": {"type": "Unigram"}}' >unreadable/tokenizer.json
expect_exit 0 "$fourfold" ckpt import --format hf unreadable from-unreadable
expect_stderr 'the model is imported without its tokenizer'
expect grep -q '^# tokenizer = ' from-unreadable/run.toml
mkdir mine && echo '# mine' >mine/run.toml
expect_exit 78 "$fourfold" ckpt import --format hf hf mine
expect_stderr 'mine/run.toml: is there already'
expect grep -q '# mine' mine/run.toml
expect_exit 0 "$fourfold" ckpt info from-hf/step-000000000
expect_stdout 'step      0'
expect_exit 0 ranks 1 sample --checkpoint from-hf --prompt chapter --tokens 3
# A full disk, or what looks like one: nothing is left behind.
for format in hf llm.c; do
  # shellcheck disable=SC2016
  expect_exit 73 bash -c 'ulimit -f 20 && exec "$0" ckpt export --format "$1" run/checkpoints full' "$fourfold" "$format"
  expect_stderr 'ulimit -f'
  expect test -z "$(find . -name '*full*')"
done
# A run that begins with weights: without [model] the checkpoint's model; another one is refused by key, not by tensor.
sed '/^\[model\]/,/^context/d' run.toml >tuning.toml
grep -q hidden tuning.toml && complain "tuning.toml has a model"
tune() {
  local code=$1 file=$2
  shift 2
  expect_exit "$code" ranks 2 train "$file" --set log.dir=tuned --resume-weights-only=from-hf/step-000000000 "$@"
}
tune 78 run.toml --set model.layers=3 --set model.rope_theta=5
expect_stderr 'model.layers is 3, the checkpoint has 2'
expect test "$(grep -c 'is not in the checkpoint' "$errors")" -eq 0
tune 78 run.toml --set model.heads=4
expect_stderr 'model.heads is 4, the checkpoint has 2  (allow it with --allow-change=model.heads)'
tune 78 run.toml --set model.norm_epsilon=0.001 --set model.heads=4 --allow-change=model.heads
expect_stderr 'model.norm_epsilon is 0.001, the checkpoint has 1e-05'
expect test ! -e tuned/checkpoints/step-000000002
tune 0 tuning.toml
expect test "$(sed -n '/^\[model\]/,/^$/p' tuned/config.toml | grep -c 'from checkpoint.resume')" -ge 10
expect grep -q '^heads = 2 ' tuned/config.toml
# A later start of the chain, when what it began with is gone.
mv from-hf gone-hf
tune 0 tuning.toml --set train.steps=4 --allow-change=optim.decay_steps
expect_stdout_or_stderr() { grep -qF -- "$1" "$output" "$errors" || complain "nothing says '$1'"; }
expect_stdout_or_stderr 'cannot be opened any more'
mv gone-hf from-hf
expect_exit 0 ranks 2 train run.toml --set log.dir=allowed --set model.heads=4 \
  --resume-weights-only=from-hf/step-000000000 --allow-change=model.heads --allow-change=model.kv_heads \
  --allow-change=model.head_dim
expect_exit 0 "$fourfold" plan tuning.toml --ranks 1 --set checkpoint.resume=from-hf/step-000000000
expect_stdout '2 layers, hidden 32'
expect_exit 78 "$fourfold" plan tuning.toml --ranks 1 --set checkpoint.resume=nowhere --set log.dir=new
expect_stderr 'nowhere: is no checkpoint (there is no such folder or file)'
expect_exit 0 "$fourfold" ckpt info --run-file from-hf
expect_stdout 'layers = 2'
# It is a run file to begin with, in which what was derived is derived again.
expect_exit 0 "$fourfold" ckpt info --run-file run
cp "$output" saved.toml
expect grep -q '^# decay_steps = .*# from train.steps$' saved.toml
expect_exit 0 "$fourfold" train saved.toml --set train.steps=12 --set log.dir=from-saved --print-config
expect grep -q '^# decay_steps = 12 ' "$output"
! grep -q 'has no effect' "$errors" || complain 'defaults without effect are told of'
# Names of any bytes: what is written is read again, or nothing is written.
for name in $'imp\nevil = 1' $'imp\x1b[2J' $'imp\x7f' "it's" 'a "b" \\c'; do
  expect_exit 0 "$fourfold" ckpt import hf "$name"
  expect_exit 0 "$fourfold" train "$name/run.toml" --print-config
  expect test "$(grep -c evil "$name/run.toml")" -le "$([[ $name == *evil* ]] && echo 3 || echo 0)"
  ! grep -q '^evil' "$name/run.toml" || complain 'a name wrote a key'
done
cp -r hf $'hf\xe9'
expect_exit 78 "$fourfold" ckpt import $'hf\xe9' latin
expect_stderr 'not UTF-8'
expect test ! -e latin
# A folder of one file, and the index of others.
expect_exit 0 "$fourfold" ckpt export --format hf run/checkpoints one
cp -r hf both && cp one/model.safetensors both/
expect_exit 78 "$fourfold" ckpt import both out
expect_stderr 'both: holds model.safetensors, and model.safetensors.index.json says that'
expect test ! -e out
# Neither an import nor a reshard puts a step into the log.dir of a run whose checkpoints are elsewhere.
expect_exit 0 "$fourfold" train run.toml --set log.dir=apart --set checkpoint.dir=apart-steps
for verb in "import hf" "reshard apart-steps --to dp=2"; do
  read -ra words <<<"$verb"
  expect_exit 78 "$fourfold" ckpt "${words[0]}" "${words[1]}" apart "${words[@]:2}"
  expect_stderr 'apart: is the directory of a run'
done
expect_exit 0 "$fourfold" job begin tuning.toml --set log.dir=chain --set checkpoint.resume=from-hf/step-000000000 \
  --set model.heads=2 --set mesh.tp=2
expect_exit 64 "$fourfold" ckpt export run/checkpoints out
expect_exit 64 "$fourfold" ckpt export --format gguf run/checkpoints out
expect_exit 64 "$fourfold" ckpt export --format hf --shard-size many run/checkpoints out
for size in 0 -1 100; do
  expect_exit 64 "$fourfold" ckpt export --format hf --shard-size "$size" run/checkpoints out
done
# shellcheck disable=SC2088  # as it stands
expect_exit 64 "$fourfold" ckpt export --format hf run/checkpoints '~/out'
expect_stderr 'out begins with ~ (only a shell reads that as your home'
# Rows that fill the vocabulary are told, and a model beside which an adapter lies is not taken for the whole.
expect_exit 0 "$fourfold" ckpt export --format hf --vocab-multiple 7 --dry-run run/checkpoints out
expect_stdout 'rows of zeros, whose logits are 0'
expect_exit 0 "$fourfold" ckpt export --format hf --vocab-multiple 1 --dry-run run/checkpoints out
expect_no_stdout 'rows of zeros'
expect_exit 0 "$fourfold" train run.toml --set log.dir=biased --set model.family=llama --set model.qkv_bias=true --set train.steps=1
expect_exit 0 "$fourfold" ckpt export --format hf --dry-run biased out
expect_stdout 'splits text as Qwen 2 does for every folder of its model type'
expect_exit 0 "$fourfold" ckpt export --format hf --dry-run --tokenizer none biased out
expect_no_stdout 'as Qwen 2 does'
cp -r one adapted && echo '{}' >adapted/adapter_config.json
expect_exit 78 "$fourfold" ckpt import --format hf adapted taken
expect_stderr 'adapted/adapter_config.json: the folder holds an adapter beside the model'
expect test ! -e taken
expect_exit 78 "$fourfold" ckpt import --format hf no/such out
expect_exit 78 "$fourfold" ckpt import --format llm.c text.txt out
expect_stderr 'is no model of llm.c'
# A folder as the cache of Hugging Face has it, whose links are followed; a link that leads nowhere; a folder and a file
# that are links; an index that leads out of its folder, and a file that is cut off.
mkdir links && ln -s "$PWD"/hf/* links/
ln -s links linked && ln -s model.bin linked.bin
for format in hf llm.c; do
  input=linked && [[ $format == llm.c ]] && input=linked.bin
  expect_exit 0 "$fourfold" ckpt import --format "$format" "$input" "linked-$format"
  expect_exit 0 "$fourfold" ckpt diff "linked-$format" from-hf
done
mkdir dangling && ln -s "$PWD"/hf/* dangling/ && ln -sf "$PWD/gone" dangling/config.json
expect_exit 78 "$fourfold" ckpt import --format hf dangling out
expect_stderr "config.json: is a symbolic link to $PWD/gone, which cannot be opened"
# Two sources of one fact in config.json.
cp -r hf twice && sed -i 's/"n_embd": 32,/"n_embd": 32, "hidden_size": 64,/' twice/config.json
expect_exit 78 "$fourfold" ckpt import --format hf twice out
expect_stderr 'n_embd = 32 contradicts hidden_size = 64'
# What Python writes into JSON does no harm where nobody uses it.
sed -i 's/"hidden_size": 64,/"hidden_size": 32, "task": [Infinity, NaN, 1e999],/' twice/config.json
expect_exit 0 "$fourfold" ckpt import --format hf twice from-twice
cp -rL links index && sed -i 's:"model-00001:"../hf/model-00001:' index/model.safetensors.index.json
expect_exit 65 "$fourfold" ckpt import --format hf index out
expect_stderr 'no file of this folder'
cp -r hf short && truncate -s -1 short/model-00001-of-*
expect_exit 65 "$fourfold" ckpt import --format hf short out
expect_stderr 'is damaged'
# Numbers of 64 bits that no f32 holds.
mkdir big && cp hf/config.json big/ && python3 - hf big/model.safetensors <<'END'
import json, struct, sys, pathlib
header, payload = {}, b""
for file in sorted(pathlib.Path(sys.argv[1]).glob("model-*.safetensors")):
    data = file.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    for name, tensor in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = tensor["data_offsets"]
        body = data[8 + length + begin:8 + length + end]
        if name.endswith("ln_f.weight"):
            values = [1e300] + [1.0] * (len(body) // 4 - 1)
            body, tensor["dtype"] = struct.pack(f"<{len(values)}d", *values), "F64"
        tensor["data_offsets"] = [len(payload), len(payload) + len(body)]
        header[name], payload = tensor, payload + body
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + payload)
END
expect_exit 78 "$fourfold" ckpt import --format hf big out
expect_stderr 'holds 1e+300, which overflows f32'
expect test ! -e out/step-000000000
rm -rf out

expectations_met
