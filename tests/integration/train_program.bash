#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Training as users do it, over real MPI ranks: train, restart at other sizes, evaluate, sample, stop by signal; and
# everything that can be wrong with data, mesh, launcher and checkpoints. Usage: train_program.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"

prepare_text 300 --validation-fraction 0.1
cat >run.toml <<'END'
[model]
layers = 2
hidden = 32
heads = 2
vocab = 257
context = 32
[train]
global_batch = 8
micro_batch = 1
steps = 8
eval_every_steps = 4
eval_batches = 0
[optim]
lr = 1e-2
schedule = "constant"
[data]
train = ["tokens_train"]
validation = ["tokens_val"]
[checkpoint]
every_steps = 4
[log]
dir = "run"
END

# A dry run finds everything in place and leaves no run.
expect_exit 0 ranks 2 train run.toml --dry-run
expect test ! -e run/metrics.jsonl

# Train on 2 ranks, go on with 4, then with 1.
expect_exit 0 ranks 2 train run.toml
expect test -s run/checkpoints/step-000000008/MANIFEST.json
expect_exit 0 ranks 4 train run.toml --set train.steps=12
expect_stderr 'resumed from run/checkpoints/step-000000008 (step 8, saved on mesh pp1 dp2 cp1 tp1, now pp1 dp4 cp1 tp1)'
expect_exit 0 "$fourfold" train run.toml --set train.steps=12
expect_stderr 'step 12'

# The loss of a checkpoint does not depend on the ranks that measure it.
expect_exit 0 "$fourfold" evaluate --checkpoint run/checkpoints --data tokens_val --json
one=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["loss"])' "$output")
expect_exit 0 ranks 3 evaluate --checkpoint run/checkpoints --data tokens_val --json --micro-batch 2
expect python3 -c 'import json, sys
other = json.load(open(sys.argv[1]))["loss"]
assert abs(other - float(sys.argv[2])) < 1e-6 * other' "$output" "$one"

# The logits that evaluate leaves behind give the very loss it prints, whatever the ranks.
expect_exit 0 ranks 3 evaluate --checkpoint run/checkpoints --data tokens_val --micro-batch 2 --logits logits3.h5
expect_exit 0 "$fourfold" evaluate --checkpoint run/checkpoints --data tokens_val --logits logits1.h5
expect_exit 0 "$fourfold" evaluate --checkpoint run/checkpoints --data tokens_val --logits logits1.h5 # its own
cp run.toml mine.h5
for file in mine.h5 tokens_val.bin; do
  expect_exit 78 "$fourfold" evaluate --checkpoint run/checkpoints --data tokens_val --logits "$file"
  expect_stderr "not made by \`fourfold evaluate --logits\`"
done
expect cmp run.toml mine.h5
expect h5diff --delta=1e-5 logits1.h5 logits3.h5 # of numbers around 1; some are nearly 0
for array in logits targets; do
  h5dump -d "/$array" -b LE -o "$array.raw" logits3.h5 >/dev/null
done
expect python3 -c 'import array, math, sys
logits, targets = array.array("f"), array.array("i")
logits.frombytes(open("logits.raw", "rb").read())
targets.frombytes(open("targets.raw", "rb").read())
losses = []
for row, target in enumerate(targets):
    values = logits[257 * row:257 * row + 257]
    if target != -100:
        losses.append(math.log(sum(math.exp(value) for value in values)) - values[target])
assert len(logits) == 257 * len(targets) and targets.count(-100) < 32
assert abs(sum(losses) / len(losses) - float(sys.argv[1])) < 1e-6' "$one"
expect_exit 73 ranks 2 evaluate --checkpoint run/checkpoints --data tokens_val --logits no/such/folder/logits.h5
expect_stderr 'no/such/folder/logits.h5'

# Weights of the size of 1e30 can be saved; their loss is no number, and that is no success.
expect_exit 0 "$fourfold" train run.toml --set log.dir=huge --set train.steps=1 --set optim.lr=1e30 \
  --set optim.warmup_steps=0 --set 'data.validation=[]'
expect_exit 65 "$fourfold" evaluate --checkpoint huge/checkpoints --data tokens_val
expect_stderr 'is not finite'
expect_stderr 'take an older checkpoint'

# The same prompt and seed give the same text; it begins with the prompt.
expect_exit 0 "$fourfold" sample --checkpoint run/checkpoints --prompt 'verse 1' --tokens 20 --seed 3
expect_stdout 'verse 1'
first=$(cat "$output")
expect_exit 0 "$fourfold" sample --checkpoint run/checkpoints --prompt 'verse 1' --tokens 20 --seed 3
expect test "$first" = "$(cat "$output")"
expect_exit 78 "$fourfold" sample --checkpoint absent --prompt x
expect_exit 64 "$fourfold" sample --checkpoint run/checkpoints --prompt x --temperature nan
expect_exit 78 "$fourfold" sample --checkpoint run/checkpoints --prompt x --tokenizer "$SOURCE_DIR/tests/golden/tokenizers/gpt2.json"
expect_stderr 'model.vocab = 257'

# A model's vocabulary may be larger than its tokenizer's: what only the model has is never drawn. Nearly uniform draws.
expect_exit 0 "$fourfold" train run.toml --set log.dir=rounded_up --set train.steps=1 --set model.vocab=1024 --set 'data.validation=[]'
expect_exit 0 "$fourfold" sample --checkpoint rounded_up/checkpoints --prompt x --tokens 200 --temperature 1000

# What is drawn is printed as a text: words with their blanks, characters as a whole.
spm=$SOURCE_DIR/tests/golden/tokenizers/spm.model
expect_exit 0 "$fourfold" data prepare --output spm --tokenizer "$spm" text.txt
expect_exit 0 "$fourfold" train run.toml --set log.dir=spm_run --set train.steps=30 --set model.vocab=640 \
  --set "data.tokenizer=$spm" --set 'data.train=["spm"]' --set 'data.validation=[]'
expect_exit 0 "$fourfold" sample --checkpoint spm_run/checkpoints --prompt 'verse 1: the' --tokens 100 --seed 1
expect python3 -c 'import sys
text = open(sys.argv[1], encoding="utf-8").read()
assert text.startswith("verse 1: the") and text[12:].strip().count(" ") > 8 and "\u2581" not in text, text' "$output"

# Another tokenizer than the model's, of as many tokens: its file was replaced, or another one is named.
cp "$SOURCE_DIR/tests/golden/tokenizers/gpt2/vocab.json" words
cp "$SOURCE_DIR/tests/golden/tokenizers/gpt2/merges.txt" merges.txt
expect_exit 0 "$fourfold" data prepare --output worded --tokenizer words text.txt
expect_exit 0 "$fourfold" train run.toml --set log.dir=worded_run --set train.steps=1 --set model.vocab=901 \
  --set 'data.tokenizer=words' --set 'data.train=["worded"]' --set 'data.validation=[]'
expect_exit 0 "$fourfold" sample --checkpoint worded_run/checkpoints --prompt 'verse 1' --tokens 3
expect_exit 0 "$fourfold" ckpt export --format hf worded_run/checkpoints worded_hf
expect cmp worded_hf/merges.txt merges.txt
expect cmp worded_hf/vocab.json words
cp merges.txt merges.old
sed -i '$d' merges.txt
for verb in 'sample --prompt x --tokens 3 --checkpoint' 'ckpt export --format hf --dry-run'; do
  to=()
  [[ $verb == sample* ]] || to=(out)
  for tokenizer in '' "--tokenizer=$spm" --tokenizer=byte; do
    # shellcheck disable=SC2086
    expect_exit 78 "$fourfold" $verb worded_run/checkpoints "${to[@]}" $tokenizer
    expect_stderr "checkpoints/step-000000001 was trained on: $PWD/words (901 tokens), as it was then"
    # shellcheck disable=SC2086
    expect_exit 0 "$fourfold" $verb worded_run/checkpoints "${to[@]}" $tokenizer --allow-mixed-tokenizers
    expect_stderr 'is not the one of the data'
  done
done
expect_exit 0 "$fourfold" ckpt export --format hf worded_run/checkpoints worded_bare --tokenizer none
mv words renamed-words
mv merges.old merges.txt
expect_exit 0 "$fourfold" sample --checkpoint worded_run/checkpoints --prompt 'verse 1' --tokens 3 --tokenizer renamed-words

# Token files that were moved without their tokenizer train; who writes text says what is missing.
mkdir moved
for suffix in bin idx json; do cp "spm.$suffix" moved; done
sed -i 's|"tokenizer": ".*|"tokenizer": "/nowhere/spm.model",|' moved/spm.json
expect_exit 0 "$fourfold" train run.toml --set log.dir=moved_run --set train.steps=1 --set model.vocab=640 \
  --set 'data.train=["moved/spm"]' --set 'data.validation=[]'
expect_stderr 'warning: data.tokenizer = "/nowhere/spm.model", from moved/spm.json, cannot be used'
expect_stderr 'training does without'
expect_exit 78 "$fourfold" sample --checkpoint moved_run/checkpoints --prompt 'verse 1' --tokens 3
expect_stderr 'say where it is now with --tokenizer'
expect_exit 0 "$fourfold" sample --checkpoint moved_run/checkpoints --prompt 'verse 1' --tokens 3 --tokenizer "$spm"

# Of a prompt that is too long the end counts, and that is said.
expect_exit 0 "$fourfold" sample --checkpoint run/checkpoints --prompt "$(head -c 200 text.txt)" --tokens 2 --temperature 0
expect_stderr 'the prompt has 200 tokens, and model.context is 32: the model sees the last 32'
expect_exit 0 "$fourfold" sample --checkpoint run/checkpoints --prompt "$(head -c 32 text.txt)" --tokens 2 --temperature 0
expect test ! -s "$errors"

# Tokens of another tokenizer than the model's.
expect_exit 78 "$fourfold" evaluate --checkpoint spm_run/checkpoints --data tokens_val
expect_stderr 'was trained on those of'
expect_exit 0 "$fourfold" evaluate --checkpoint spm_run/checkpoints --data tokens_val --allow-mixed-tokenizers
expect_exit 78 "$fourfold" train run.toml --set log.dir=bad --set 'data.train=["spm", "tokens_train"]'
expect_stderr 'data.allow_mixed_tokenizers = true'
expect_exit 0 "$fourfold" train --print-config run.toml --set 'data.train=["spm"]' --set 'data.validation=[]' --set model.vocab=640
expect_stdout "tokenizer = \"$spm\""
expect_stdout '# from spm.json'

# Training data replaced by as many tokens.
tr 'a-y' 'b-z' <text.txt >other.txt
expect_exit 0 "$fourfold" data prepare --output replaced --append-eot text.txt
expect_exit 0 "$fourfold" train run.toml --set log.dir=replaced_run --set train.steps=4 --set 'data.train=["replaced"]' --set 'data.validation=[]'
expect_exit 0 "$fourfold" data prepare --output replaced --append-eot other.txt
expect_exit 78 "$fourfold" train run.toml --set log.dir=replaced_run --set train.steps=8 --set 'data.train=["replaced"]' --set 'data.validation=[]'
expect_stderr 'replaced.bin has as many tokens as then, but others'
expect_exit 0 "$fourfold" train run.toml --set log.dir=replaced_run --set train.steps=8 --set 'data.train=["replaced"]' --set 'data.validation=[]' \
  --allow-change=data.train --allow-change=optim.decay_steps --allow-change=optim.cooldown_steps

# A damaged newest checkpoint is named and the older one taken.
shard=$(ls run/checkpoints/step-000000012/shard-00000-*.h5)
python3 -c 'import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(-300, 2)
    byte = file.read(1)
    file.seek(-300, 2)
    file.write(bytes([byte[0] ^ 1]))' "$shard"
truncate -s -1 "$shard"
expect_exit 0 ranks 2 train run.toml --set train.steps=12
expect_stderr 'step-000000012'
expect_stderr 'resumed from run/checkpoints/step-000000008'

# Meshes and batches that do not fit.
expect_exit 78 ranks 3 train run.toml --set log.dir=bad
expect_stderr 'global_batch'
expect_exit 78 ranks 2 train run.toml --set mesh.dp=3 --set log.dir=bad
expect_exit 78 env SLURM_STEP_NUM_TASKS=4 "$fourfold" train run.toml --set log.dir=bad
expect_stderr 'srun'

# What cannot be cut, and what is not there, is told with its line, and before anything begins.
sed 's/^\[train\]/[mesh]\ntp = 4\n[train]/' run.toml >cut.toml
expect_exit 78 ranks 4 train cut.toml --set log.dir=bad
expect_stderr 'error: cut.toml:8:1: mesh.tp = 4 does not fit model.heads = 2'
expect test ! -e bad/.run-lease # or the next start would wait for this one
expect_exit 78 ranks 2 train cut.toml --set log.dir=bad
expect_stderr 'error: cut.toml:8:1: the mesh does not fit 2 ranks'
sed 's/^\[data\]/&\ntokenizer = "absent.json"/' run.toml >absent.toml
expect_exit 78 ranks 2 train absent.toml --dry-run
expect_stderr 'error: absent.toml:17:1: data.tokenizer = "absent.json" cannot be used (absent.json: there is no such tokenizer'
expect_stderr 'set data.tokenizer to where it is now'
expect_exit 78 "$fourfold" train absent.toml --set log.dir=bad

# Ranks that were started differently.
expect_exit 78 "$MPIEXEC" -n 1 "$fourfold" train run.toml --set log.dir=bad --set train.global_batch=6 --set optim.lr=1e-2 : \
  -n 2 "$fourfold" train run.toml --set log.dir=bad --set train.global_batch=6 --set optim.lr=1e-3
expect_stderr '(optim.lr = 0.01 on rank 0; optim.lr = 0.001 on ranks 1-2)'
expect_exit 78 "$MPIEXEC" -n 1 "$fourfold" train run.toml --set log.dir=bad : \
  -n 1 "$fourfold" train run.toml --set log.dir=bad --dry-run
expect_stderr '--dry-run = true on rank 1'
# Token files of one name and size that are others on another node.
mkdir near far
tr 'a-m' 'n-z' <text.txt >far/text.txt && cp text.txt near
for node in near far; do (cd $node && expect_exit 0 "$fourfold" data prepare --output staged --append-eot text.txt); done
staged=(train "$PWD/run.toml" --set 'data.train=["staged"]' --set 'data.validation=[]' --set "log.dir=$PWD/bad")
expect_exit 78 "$MPIEXEC" -n 1 env -C near "$fourfold" "${staged[@]}" : -n 1 env -C far "$fourfold" "${staged[@]}"
expect_stderr 'data.train: rank 1 reads other tokens than rank 0 under one name (staged.bin)'
staged=(evaluate "$PWD/run" --data staged)
expect_exit 78 "$MPIEXEC" -n 1 env -C near "$fourfold" "${staged[@]}" : -n 1 env -C far "$fourfold" "${staged[@]}"
expect_stderr '--data: rank 1 reads other tokens than rank 0'
expect_exit 78 "$MPIEXEC" -n 1 env -C near "$fourfold" "${staged[@]}" : -n 1 env -C near "$fourfold" "${staged[@]}" --samples 9
expect_stderr '--samples = 0 on rank 0; --samples = 9 on rank 1'
expect_exit 78 "$MPIEXEC" -n 1 "$fourfold" sample run --prompt a --tokens 1 : -n 1 "$fourfold" sample run --prompt b --tokens 1
expect_stderr '--prompt = a on rank 0; --prompt = b on rank 1'
expect_exit 0 "$MPIEXEC" -n 1 env -C near "$fourfold" "${staged[@]}" --progress none : -n 1 env -C near "$fourfold" "${staged[@]}"
rm -r far && cp -r near far
expect_exit 0 "$MPIEXEC" -n 1 env -C near "$fourfold" "${staged[@]}" : -n 1 env -C far "$fourfold" "${staged[@]}"
expect test ! -e bad

# Data that cannot be right: one message, code 65 or 78, no checkpoint.
expect_exit 78 ranks 2 train run.toml --set model.vocab=100 --set log.dir=bad
expect_stderr 'model.vocab = 100 (--set) is less than the 257 tokens that'
expect_stderr 'tokens_train.json'
cp tokens_train.bin bare.bin && cp tokens_train.idx bare.idx
expect_exit 65 ranks 2 train run.toml --set model.vocab=100 --set log.dir=bad --set 'data.train=["bare"]' --set 'data.validation=[]'
expect_stderr 'bare.bin: token'
expect_stderr 'no record says which tokenizer made it'
# Nor does anybody say it then: a sample asks.
expect_exit 0 "$fourfold" train run.toml --set log.dir=recordless --set 'data.train=["bare"]' --set 'data.validation=[]' --set train.steps=1
expect_exit 78 "$fourfold" sample recordless --prompt x --tokens 2
expect_stderr 'or its token files have no record); name it with --tokenizer'
expect_exit 0 "$fourfold" sample recordless --prompt x --tokens 2 --tokenizer byte
expect_exit 0 "$fourfold" plan run.toml --ranks 2 --set 'data.train=["bare"]' --set 'data.validation=[]'
expect_stderr 'no record says which tokenizer made it'
expect_exit 0 "$fourfold" verify run.toml --steps 1 --mesh dp=1 --mesh tp=2 --set 'data.train=["bare"]' --set 'data.validation=[]'
expect_stderr 'no record says which tokenizer made it'
expect_exit 78 ranks 2 train run.toml --set 'data.train=["absent"]' --set log.dir=bad
cp tokens_train.idx short.idx && head -c 1001 tokens_train.bin >short.bin
expect_exit 65 ranks 2 train run.toml --set 'data.train=["short"]' --set log.dir=bad
: >empty.bin
expect_exit 65 ranks 2 train run.toml --set 'data.train=["empty.bin"]' --set log.dir=bad
expect test ! -e bad/checkpoints/step-000000004

cp tokens_train.idx middle.idx && cp tokens_train.bin middle.bin
python3 -c 'with open("middle.idx", "r+b") as file:  # the length of a document in the middle
    file.seek(9 + 8 + 1 + 8 + 8 + 4 * 100)
    file.write(b"\xf9\xff\xff\xff")'
expect_exit 65 ranks 2 train run.toml --set 'data.train=["middle"]' --set log.dir=bad
mkfifo pipe.bin
expect_exit 78 timeout 20 "$fourfold" data info pipe.bin
expect_exit 78 timeout 60 "$fourfold" train run.toml --set model.layers=1000000000 --set log.dir=bad
expect_exit 78 timeout 60 "$fourfold" train run.toml --set train.global_batch=1000000000 --set log.dir=bad
expect_exit 78 "$fourfold" evaluate --checkpoint run/checkpoints --data tokens_val --logits tokens_val.bin

# Nowhere to write to: logs never stop a run, checkpoints and answers that are lost are told.
expect_exit 0 "$fourfold" sample --checkpoint run/checkpoints --prompt x --tokens 2
# shellcheck disable=SC2016  # $0 is the inner shell's
nowhere() {
  expect_exit 73 bash -c '"$0" sample --checkpoint run/checkpoints --prompt x --tokens 2 >/dev/full' "$fourfold"
  expect_exit 0 bash -c '"$0" train run.toml --set log.dir=mute --set train.steps=2 2>/dev/full' "$fourfold"
  expect_exit 73 bash -c 'ulimit -f 20000; "$0" train run.toml --set log.dir=limit --set train.steps=1 \
    --set model.hidden=256 --set model.layers=4 --set train.global_batch=1' "$fourfold"
  expect grep -q '"code": *73' limit/exit.json
}
nowhere

# A checkpoint directory that cannot be one, found by the dry run and by the save.
: >in_the_way
expect_exit 73 ranks 2 train run.toml --dry-run --set checkpoint.dir=in_the_way/checkpoints --set log.dir=full
expect_exit 73 ranks 2 train run.toml --set checkpoint.dir=in_the_way/checkpoints --set log.dir=full
expect test ! -e full # before any work that could not be saved

# A start that is refused leaves the end of an earlier one in exit.json, and its config.toml.
# says FILE KEY VALUE: what a JSON file says, the value as Python writes it.
says() { expect python3 -c 'import json, sys
found = json.load(open(sys.argv[1]))[sys.argv[2]]
assert repr(found) == sys.argv[3], found' "$@"; }
says run/exit.json code 0
cp -r run before
expect_exit 78 ranks 2 train run.toml --set train.steps=20 --set mesh.dp=3
expect_exit 78 ranks 2 train run.toml --set train.steps=20 --set optim.lr=0.5
expect diff -r before run

# All ranks fail at once: one end is told, with the step and the checkpoint that the run got to.
for _ in 1 2 3; do
  rm -rf diverged
  expect_exit 65 ranks 4 train run.toml --set log.dir=diverged --set 'optim.name="sgd"' --set optim.lr=1e30 \
    --set optim.clip_norm=0 --set checkpoint.every_steps=1 --progress none
  says diverged/exit.json code 65
  step=$(python3 -c 'import json; print(json.load(open("diverged/exit.json"))["step"])')
  expect test "$step" -ge 1
  says diverged/exit.json checkpoint "'diverged/checkpoints/step-$(printf %09d "$step")'"
done

# f16 on four ranks: gradients overflow on the way, before a stop and after it. A save compares all copies of a weight,
# and the run that stopped has the losses and scales of the one that did not, to the last digit.
half() { # half RANKS DIR OPTIONS...
  local n=$1 dir=$2
  shift 2
  ranks "$n" train run.toml --set train.precision=f16 --set train.loss_scale_initial=16777216 \
    --set train.loss_scale_window=2 --set "log.dir=$dir" "$@"
}
expect_exit 0 half 4 half --set mesh.pp=2 --set mesh.tp=2 --set train.steps=16
expect_exit 0 half 4 halves --set mesh.pp=2 --set mesh.tp=2 --set train.steps=8
expect_exit 0 half 4 halves --set mesh.pp=2 --set mesh.tp=2 --set train.steps=16
expect_stderr ' scale '
expect_exit 0 half 4 half --set mesh.dp=2 --set mesh.cp=2 --set train.steps=20
expect python3 -c 'import json
def steps(path):
    records = [json.loads(line) for line in open(path)]
    return [[r[key] for key in ("step", "loss", "loss_scale", "skipped_steps")] for r in records if r["event"] == "step"]
whole, parts = steps("half/metrics.jsonl"), steps("halves/metrics.jsonl")
assert whole[:16] == parts, (whole, parts)
assert 0 < parts[7][3] < parts[15][3], parts
assert len(whole) == 20 and whole[0][2] == 2 ** 24, whole
for before, now, after in zip(whole, whole[1:], whole[2:]):
    assert after[2] in ([now[2] / 2] if now[3] > before[3] else [now[2], 2 * now[2]]), (now, after)'
expect_exit 0 "$fourfold" evaluate --checkpoint half/checkpoints --data tokens_val
expect_exit 0 "$fourfold" sample --checkpoint half/checkpoints --prompt 'verse 1' --tokens 5
expect_exit 65 half 2 fixed --set train.loss_scale=1099511627776
expect_stderr 'train.loss_scale, which is fixed'
says fixed/exit.json code 65
expect_exit 78 half 2 fixed --set train.loss_scale=1000
expect_stderr '512 or 1024'

# STOP holds the run until the file is gone.
mkdir held && touch held/STOP
expect_exit 93 ranks 2 train run.toml --set log.dir=held
expect_stderr 'held/STOP exists'
expect test "$(ls -A held)" = STOP
rm held/STOP

# start_long DIR OPTIONS...: two ranks train in the background with no end in sight; each notes its process in DIR.pid.
start_long() {
  local dir=$1
  shift
  mkdir "$dir.pid"
  # shellcheck disable=SC2016  # the inner shell expands these
  "$MPIEXEC" -n 2 bash -c 'touch "$0/$$"; exec "$@"' "$dir.pid" "$fourfold" train run.toml --set train.steps=100000 \
    --set "log.dir=\"$dir\"" --set train.eval_every_steps=0 --set checkpoint.every_steps=0 "$@" \
    >"$output" 2>"$errors" </dev/null &
  launcher=$!
  for _ in $(seq 300); do
    grep -qs '"step":5,' "$dir/metrics.jsonl" && break
    sleep 0.1
  done
}
# expect_end CODE: the background run ends with it.
expect_end() {
  local code=0
  wait "$launcher" || code=$?
  [[ $code -eq $1 ]] || complain "exit code $code, not $1"
}
send() { (cd "$2.pid" && kill "-$1" -- *); }

# While it runs exit.json says so; STOP saves, ends it with code 75 and says that it should not be started again.
start_long held
says held/exit.json reason "'running'"
# Another start of the run is refused, and touches nothing that the first has written; nor does one whose run file is wrong.
expect_exit 78 "$fourfold" train run.toml --set log.dir=held --set checkpoint.dir=elsewhere
expect_stderr 'two jobs would overwrite each other'
says held/exit.json reason "'running'"
expect test ! -e elsewhere
expect_exit 78 "$fourfold" train run.toml --set log.dir=held --set train.stepz=3
says held/exit.json reason "'running'"
# SAVE brings a checkpoint, and the run goes on.
touch held/SAVE
for _ in $(seq 100); do
  compgen -G 'held/checkpoints/step-*' >/dev/null && break
  sleep 0.1
done
expect test ! -e held/SAVE
expect compgen -G 'held/checkpoints/step-*/MANIFEST.json'
says held/exit.json reason "'running'"
says held/exit.json code None
touch held/STOP
expect_end 75
says held/exit.json code 75
says held/exit.json retry False
expect_exit 93 "$fourfold" train run.toml --set log.dir=held
rm held/STOP

# Killed without a word: exit.json does not say that anything ended.
start_long killed
send KILL killed
wait "$launcher"  # what a launcher makes of this is its own
says killed/exit.json reason "'running'"

# Stopped before the first step, as by a signal during set-up: nothing to save, and it can be started again.
expect_exit 75 env FOURFOLD_DEADLINE=$(($(date +%s) + 20)) "$fourfold" train run.toml --set checkpoint.margin_s=30 --set log.dir=late
says late/exit.json code 75
says late/exit.json step 0
says late/exit.json checkpoint "''"
says late/exit.json reason "'stopped before the first step: time limit'"
says late/exit.json retry True

# Suspended in an evaluation, with an end that is near: that is no time that the next one takes.
FOURFOLD_DEADLINE=$(($(date +%s) + 34)) start_long suspended --set train.eval_every_steps=1 --set train.eval_batches=0
send STOP suspended
sleep 16
records=$(wc -l <suspended/metrics.jsonl)
send CONT suspended
for _ in $(seq 50); do
  [[ $(wc -l <suspended/metrics.jsonl) -le $((records + 20)) ]] || break
  sleep 0.1
done
expect test "$(wc -l <suspended/metrics.jsonl)" -gt "$((records + 20))"
send TERM suspended
expect_end 75
says suspended/exit.json reason "'saved and stopped: SIGTERM (cancelled, preempted or requeued)'"

# A save of an earlier start that this job has no room for keeps it from no step; one that it has room for is given that.
expect_exit 0 "$fourfold" train run.toml --set log.dir=slow --set train.steps=4
sed -i 's/"longest_save_s": *[0-9.e-]*/"longest_save_s": 1000/' slow/status.json
expect_exit 0 env FOURFOLD_DEADLINE=$(($(date +%s) + 60)) "$fourfold" train run.toml --set log.dir=slow --set train.steps=8
expect python3 -c 'import json; assert json.load(open("slow/status.json"))["longest_save_s"] < 100'
sed -i 's/"longest_save_s": *[0-9.e-]*/"longest_save_s": 10/' slow/status.json
deadline=$(($(date +%s) + 25))
expect_exit 75 env FOURFOLD_DEADLINE="$deadline" "$fourfold" train run.toml --set log.dir=slow --set train.steps=100000000 --set checkpoint.every_steps=0 --set train.eval_every_steps=0
[[ $((deadline - $(date +%s))) -ge 18 ]] || complain "a save of 10 s was not left room: $((deadline - $(date +%s))) s are left"

# SIGTERM: save after the step, code 75, and the run goes on later.
start_long long
send TERM long
expect_end 75
says long/exit.json code 75
says long/exit.json retry True
step=$(python3 -c 'import json; print(json.load(open("long/exit.json"))["step"])')
expect_exit 0 ranks 1 train run.toml --set log.dir=long --set train.eval_every_steps=0 --set train.steps=$((step + 2))
expect_stderr "resumed from long/checkpoints/step-$(printf %09d "$step")"
expect_stderr "step $((step + 2))/$((step + 2)) 100.0% loss"
says long/exit.json step "$((step + 2))"

expectations_met
