#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# One run in every program: the same model, from the same place, or the same refusal with the same code, whichever of run file,
# checkpoint and token record says it. Usage: same_run.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"

prepare_text 60
# run_file NAME LINE_OF_MODEL...: without any, there is no [model] table.
run_file() {
  local name=$1
  shift
  {
    [[ $# -eq 0 ]] || printf '%s\n' '[model]' "$@"
    printf '%s\n' '[train]' 'global_batch = 4' 'micro_batch = 4' 'steps = 2' '[checkpoint]' 'every_steps = 1' \
      '[data]' 'train = ["tokens"]' '[log]' 'dir = "new"'
  } >"$name"
}
small=('layers = 1' 'hidden = 32' 'heads = 2' 'context = 32')
run_file none.toml
run_file part.toml "${small[@]}"
run_file full.toml "${small[@]}" 'vocab = 257'
# What the run was begun with: not what the record would make of it.
expect_exit 0 "$fourfold" train full.toml --set log.dir=old
cp -r old cut
printf 'x' >>cut/checkpoints/step-000000002/MANIFEST.json
cp -r old bad
printf 'x' | tee -a bad/checkpoints/step-00000000{1,2}/MANIFEST.json >/dev/null

# What a program says went wrong, without its name, and where it was when it met that; the lines that follow it too.
reason() { sed -n '/: error: /,$p' "$errors" | sed -E '1s/^[^:]*: error: //; 1s/^--mesh [^:]*: //'; }
# same_refusal CODE TEXT RUN_FILE SET...: each program refuses it, alike.
same_refusal() {
  local code=$1 text=$2 file=$3 sets=() said first='' one
  shift 3
  for one in "$@"; do sets+=(--set "$one"); done
  for one in 'train --print-config' 'train --dry-run' 'plan --ranks 1' 'submit --nodes 1 --tasks-per-node 1' 'job begin' \
    'verify --mesh dp=1 --mesh dp=1' 'doctor --seconds 5'; do
    local words=()
    read -ra words <<<"$one"
    local verb=("${words[0]}")
    [[ ${words[0]} != job ]] || verb=(job begin)
    expect_exit "$code" "$fourfold" "${verb[@]}" "$file" "${words[@]:${#verb[@]}}" "${sets[@]}"
    said=$(reason)
    first=${first:-$said}
    [[ $said == "$first" ]] || complain "$one: $said, where train says: $first"
    [[ $said == *"$text"* ]] || complain "$one does not say '$text'"
  done
}
# same_model VOCAB LAYERS HIDDEN ORIGIN RUN_FILE SET...: train says it of itself, the others show it.
same_model() {
  local vocab=$1 layers=$2 hidden=$3 origin=$4 file=$5 sets=() one
  shift 5
  for one in "$@"; do sets+=(--set "$one"); done
  expect_exit 0 "$fourfold" train "$file" --print-config "${sets[@]}"
  expect grep -qE "^vocab = $vocab +# .*$origin" "$output"
  expect grep -qE "^layers = $layers +#" "$output"
  expect_exit 0 "$fourfold" plan "$file" --ranks 1 --rank 0 "${sets[@]}"
  expect grep -qE "^    embedding.token.weight +\[$vocab, $hidden\]" "$output"
  expect_stdout "$layers layers, hidden $hidden,"
  local planned is_small=no # enough to train a step of it here
  ! grep -qF ' 1 layers, hidden 32,' "$output" || is_small=yes
  planned=$(<"$errors")
  expect_exit 0 "$fourfold" submit "$file" --nodes 1 --tasks-per-node 1 "${sets[@]}"
  expect_stderr '1 node: mesh pp1 dp1 cp1 tp1'
  [[ -z $planned ]] || grep -qF -- "$planned" "$errors" || complain "submit does not say: $planned"
  [[ $is_small == no ]] || expect_exit 0 "$fourfold" verify "$file" --steps 1 --mesh dp=1 --mesh dp=1 "${sets[@]}"
}
steps=$PWD/old/checkpoints

# A new run: what is written, else the record's.
same_model 257 1 32 'full.toml:6' full.toml
same_model 320 1 32 'the 257 tokens of tokens.json' part.toml
same_model 320 12 768 'the 257 tokens of tokens.json' none.toml
same_model 320 1 32 'the 257 tokens of tokens.json' part.toml log.dir=old checkpoint.resume=never
same_model 264 1 32 '--set' full.toml model.vocab=264
# A run that goes on: its newest step's, or that of an older one where the newest is damaged.
same_model 257 1 32 "the run's newest step in old/checkpoints" part.toml log.dir=old
same_model 257 1 32 "the run's newest step in old/checkpoints" none.toml log.dir=old
same_model 257 1 32 "the run's newest step in cut/checkpoints" none.toml log.dir=cut
same_model 320 1 32 'the 257 tokens of tokens.json' part.toml log.dir=bad
same_model 264 1 32 '--set' none.toml log.dir=more checkpoint.resume=old model.vocab=264
# A run that begins with another's step, with its folder of steps, or with that run.
for path in "$steps/step-000000001" "$steps" old full.toml; do
  [[ $path != full.toml ]] || cp -r old new
  same_model 257 1 32 'checkpoint.resume' none.toml log.dir=more "checkpoint.resume=$path"
  same_model 257 1 32 'checkpoint.resume' part.toml log.dir=more "checkpoint.resume=$path"
done
rm -r new
same_model 257 1 32 'checkpoint.resume' none.toml log.dir=old checkpoint.resume=gone
same_model 320 1 32 'the 257 tokens of tokens.json' part.toml checkpoint.resume=gone
same_refusal 78 'gone: is no checkpoint (there is no such folder or file)' none.toml checkpoint.resume=gone
same_refusal 65 'step-000000002' none.toml checkpoint.resume=bad/checkpoints/step-000000002

# Less than the record has, wherever that is said.
same_refusal 78 'model.vocab = 256 (--set) is less than the 257 tokens' full.toml model.vocab=256
sed -i 's/"vocab_size": 257/"vocab_size": 300/' tokens.json
same_refusal 78 'model.vocab = 257 (full.toml:6) is less than the 300 tokens' full.toml
same_refusal 78 "model.vocab = 257 (from the run's newest step in old/checkpoints) is less than" none.toml log.dir=old
same_refusal 78 'model.vocab = 257 (from checkpoint.resume) is less than' part.toml "checkpoint.resume=$steps"
# Without a record the checkpoint still knows.
mv tokens.json elsewhere.json
same_model 257 1 32 "the run's newest step in old/checkpoints" part.toml log.dir=old
same_model 257 1 32 "the run's newest step in old/checkpoints" none.toml log.dir=old
same_model 50257 1 32 'default' part.toml
expectations_met
