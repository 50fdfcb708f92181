#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# How checkpoints are named to programs, the same everywhere; steps that are links; what a listing passes over; what is said
# where memory is short. Usage: ckpt_names.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
# shellcheck source=tests/integration/small_run.bash
. "$(dirname "$0")/small_run.bash"
begin "$1"

small_run 6 'micro_batch = 1'
printf '%s\n' 'report = false' '[checkpoint]' 'every_steps = 2' 'keep_last = 0' >>run.toml
expect_exit 0 "$fourfold" train run.toml

# A run, its run file, its folder of steps, a step: each program takes each, in both forms.
for path in run ./run/ run.toml run/config.toml run/checkpoints run/checkpoints/step-000000006 run/checkpoints/step-000000006/; do
  for form in '' --checkpoint; do
    # shellcheck disable=SC2086  # none or one word
    {
      expect_exit 0 "$fourfold" sample $form "$path" --prompt chap --tokens 1
      expect_exit 0 "$fourfold" evaluate $form "$path" --data tokens --samples 1
      expect_stdout '(step 6)'
      expect_exit 0 "$fourfold" ckpt info $form "$path"
      expect_exit 0 "$fourfold" ckpt verify $form "$path"
      expect_exit 0 "$fourfold" ckpt repair-index $form "$path" --dry-run
      expect_stdout 'there is nothing to repair'
      expect_exit 0 "$fourfold" ckpt merge $form "$path" merged.h5 --dry-run
      expect_stdout ' -> merged.h5'
      expect_exit 0 "$fourfold" ckpt export --format hf $form "$path" hf --dry-run
      expect_stdout 'step 6 of'
      expect_exit 0 "$fourfold" ckpt reshard $form "$path" recut --to dp=2 --dry-run
      expect_stdout '-> recut'
    }
  done
  expect_exit 0 "$fourfold" ckpt diff "$path" run/checkpoints
  expect_exit 0 "$fourfold" train run.toml --dry-run --set log.dir=new --resume="$path"
done
# The option stands anywhere, with its value in the same word or the next one.
for named in '--checkpoint run' --checkpoint=run; do
  # shellcheck disable=SC2086  # one or two words
  {
    expect_exit 0 "$fourfold" ckpt merge merged.h5 $named --dry-run
    expect_stdout 'step-000000006 -> merged.h5'
    expect_exit 0 "$fourfold" ckpt reshard recut --to dp=2 $named --dry-run
    expect_stdout '-> recut'
    expect_exit 0 "$fourfold" ckpt export --format hf hf --dry-run $named
    expect_stdout 'step 6 of'
    expect_exit 0 "$fourfold" evaluate --samples 1 --data tokens $named
    expect_stdout '(step 6)'
  }
done
# Who asks for a run may name its checkpoints.
for path in run run/ run/checkpoints run/checkpoints/ run/checkpoints/step-000000004 ./run/checkpoints/step-000000006/; do
  expect_exit 0 "$fourfold" status --short "$path"
  expect_stdout 'run: finished'
  expect_exit 0 "$fourfold" watch "$path"
  expect_exit 0 "$fourfold" report "$path"
  expect_stdout 'run/report.html'
done
(cd run/checkpoints && "$fourfold" status --short step-000000006) >"$output" 2>"$errors" || complain 'from inside'
expect_stdout 'finished'
cp -r run/checkpoints elsewhere
for path in elsewhere elsewhere/step-000000006; do
  for verb in status watch report; do
    expect_exit 78 "$fourfold" $verb "$path"
    expect_stderr "$path: holds checkpoints, and what a run tells is not there"
    expect_stderr "name the run's log.dir, or its run file"
  done
done
expect_exit 0 "$fourfold" ckpt gc run --keep-last 1 --dry-run
expect_stdout 'would remove step 4'
expect_exit 0 "$fourfold" ckpt gc --checkpoint run.toml --keep-last 2 --dry-run
expect_stdout 'would remove step 2'
expect_exit 78 "$fourfold" ckpt gc run/checkpoints/step-000000006
expect_exit 64 "$fourfold" sample --prompt chap
expect_stderr 'checkpoint is required'
for path in nowhere text.txt tokens.bin /dev/null .; do
  expect_exit 78 "$fourfold" ckpt info "$path"
  expect_stderr "$path: is no checkpoint"
  expect_stderr "a run's folder or"
done
mkdir -p young/checkpoints
expect_exit 78 "$fourfold" sample young --prompt chap
expect_stderr 'the run has no checkpoint (young/checkpoints holds no step)'
# A copy of a run has its own checkpoints, whatever its config.toml says; one that lies elsewhere is found by what it says.
cp -r run copy
rm -r copy/checkpoints/step-000000006
expect_exit 0 "$fourfold" evaluate copy --data tokens --samples 1
expect_stdout 'copy/checkpoints/step-000000004 (step 4)'
expect_exit 0 "$fourfold" evaluate copy/config.toml --data tokens --samples 1
expect_stdout 'copy/checkpoints/step-000000004 (step 4)'
expect_exit 0 "$fourfold" ckpt gc copy/config.toml --keep-last 1 --dry-run
expect_stdout 'would remove step 2'
# A run file of another folder finds this folder's steps under its own names: it is compared with what made them.
mkdir other
sed 's/^layers = .*/layers = 3/' run.toml >other/model.toml
{ cat run.toml && printf '[optim]\nlr = 0.5\n'; } >other/rate.toml
tar -cf before.tar run
for use in 'sample --prompt chap' 'evaluate --data tokens' 'ckpt info' 'ckpt verify' 'ckpt gc --keep-last 1' 'ckpt diff run'; do
  # shellcheck disable=SC2086  # words
  expect_exit 78 "$fourfold" $use other/model.toml
  expect_stderr 'other/model.toml: run/checkpoints, where it keeps its checkpoints as seen from here, has those of another configuration'
  expect_stderr '(there -> here: model.layers: 1 -> 3)'
done
expect_exit 78 "$fourfold" train run.toml --set log.dir=new --resume-weights-only=other/model.toml
expect_stderr 'model.layers: 1 -> 3'
# What a run may change on its way is no other model; what removes is more careful.
expect_exit 0 "$fourfold" evaluate other/rate.toml --data tokens --samples 1
expect_exit 78 "$fourfold" ckpt gc other/rate.toml --keep-last 1
expect_stderr 'optim.lr: '
# One that no start takes cannot be compared; one whose token files have gone can.
sed 's/^steps = .*/stepz = 6/' run.toml >other/wrong.toml
for use in 'evaluate --data tokens' 'ckpt gc --keep-last 1'; do
  # shellcheck disable=SC2086  # words
  expect_exit 78 "$fourfold" $use other/wrong.toml
  expect_stderr 'other/wrong.toml: whether the checkpoints in run/checkpoints are its own cannot be told ('
  expect_stderr 'stepz'
done
sed 's/"tokens"/"gone"/' run.toml >other/gone.toml
expect_exit 0 "$fourfold" evaluate other/gone.toml --data tokens --samples 1
sed 's/"tokens"/"gone"/; s/^layers = .*/layers = 3/' run.toml >other/gone.toml
expect_exit 78 "$fourfold" evaluate other/gone.toml --data tokens --samples 1
expect tar -df before.tar
expect_exit 0 "$fourfold" train run.toml --set log.dir=apart --set checkpoint.dir=far --set train.steps=2
expect_exit 0 "$fourfold" evaluate apart --data tokens --samples 1
expect_stdout 'far/step-000000002 (step 2)'

# The best steps are those of the newest validation data: losses of others are not compared.
head -c 3000 /dev/zero | tr '\0' Z >easy.txt # each loss is below those that come after
expect_exit 0 "$fourfold" data prepare --output easy easy.txt
rated=("$fourfold" train run.toml --set log.dir=rated --set train.eval_every_steps=2 --set train.eval_batches=1 --set optim.decay_steps=12
  --set checkpoint.keep_last=1 --set checkpoint.keep_best=1)
expect_exit 0 "${rated[@]}" --set train.steps=4 --set 'data.validation=["easy"]'
cp -r rated same
expect_exit 0 "${rated[@]}" --set train.steps=8 --set 'data.validation=["tokens"]'
expect_exit 0 "${rated[@]}" --set log.dir=same --set checkpoint.dir=same/checkpoints --set train.steps=8 --set 'data.validation=["easy"]'
expect python3 -c 'import json, os
# Of the steps that are there, which is the best by the losses of the run: those of steps 6 and 8 alone where the data changed.
for run, rated in ("rated", (6, 8)), ("same", (2, 4, 6, 8)):
    lines = [json.loads(line) for line in open(run + "/metrics.jsonl")]
    loss = {line["step"]: line["loss"] for line in lines if line["event"] == "eval"}
    assert run == "same" or min(loss[6], loss[8]) > max(loss[2], loss[4]), loss
    best = min(rated, key=lambda step: (loss[step], -step))
    there = {int(name[5:]) for name in os.listdir(run + "/checkpoints") if name.startswith("step-")}
    assert there == {best, 8}, (run, loss, there)'
for run in rated same; do
  best=$(find $run/checkpoints -name 'step-*' | sort | head -n 1) # what is kept beside the newest
  for name in $run $run/checkpoints $run/config.toml; do
    expect_exit 0 "$fourfold" ckpt info "$name:best"
    expect_stdout "$best"
    expect_exit 0 "$fourfold" ckpt info "$name"
    cp "$output" newest.txt
    expect_exit 0 "$fourfold" ckpt info "$name:latest"
    expect cmp "$output" newest.txt
  done
  expect_exit 0 "$fourfold" evaluate $run:best --data tokens --samples 1
  expect_stdout "$best"
done
expect_exit 78 "$fourfold" sample apart:best --prompt x
expect_stderr 'no step in far notes a validation loss'
expect_exit 78 "$fourfold" sample rated/checkpoints/step-000000008:best --prompt x
expect_stderr 'is one step, of which there is neither a best nor a latest'

# A run resumes from a run; it goes on from its own steps when that one has got newer ones meanwhile, and from itself.
expect_exit 0 "$fourfold" train run.toml --set log.dir=second --resume=apart --set train.steps=4 --set optim.decay_steps=2
expect_stderr 'step-000000002'
expect_exit 0 "$fourfold" train run.toml --set log.dir=apart --set checkpoint.dir=far --set optim.decay_steps=2
expect_exit 0 "$fourfold" train run.toml --set log.dir=second --resume=apart --set optim.decay_steps=2
expect_stderr 'second/checkpoints holds step 4 of a run that began at apart'
expect_exit 0 "$fourfold" train run.toml --set log.dir=second --resume=second --set optim.decay_steps=2 --set train.steps=8

# Steps that were moved and linked: the run goes on from the newest, and what is done with a link leaves what it leads to.
mkdir old
mv run/checkpoints/step-00000000[46] old
ln -s "$PWD"/old/step-000000004 "$PWD"/old/step-000000006 run/checkpoints
tar -cf before.tar old
expect_exit 0 "$fourfold" ckpt verify --deep run
expect test "$(grep -c intact "$output")" -eq 3
expect_exit 0 "$fourfold" ckpt info run
expect test "$(wc -l <"$output")" -eq 4
expect_exit 0 "$fourfold" train run.toml --set train.steps=8 --set optim.decay_steps=6 --set checkpoint.keep_last=2
expect_stderr 'step-000000006'
expect test "$(cd run/checkpoints && echo *)" = 'LATEST step-000000006 step-000000008'
expect_stderr "step-000000004: the link is removed; what it led to, $PWD/old/step-000000004, is kept"
expect_exit 0 "$fourfold" ckpt gc run --keep-last 1
expect_stdout "removes step 6 (a link; what it leads to, $PWD/old/step-000000006, is kept)"
expect tar -df before.tar

# What looks like a step and is none is named; a run begins anew only where nothing looks like one.
expect_exit 0 "$fourfold" train run.toml --set log.dir=lost
mv lost/checkpoints/step-000000006 lost-step
ln -s "$PWD/not/mounted" lost/checkpoints/step-000000006
rm -r lost/checkpoints/step-000000004
echo 'a file' >lost/checkpoints/step-000000004
mkdir lost/checkpoints/step-10 lost/checkpoints/lost+found lost/checkpoints/.snapshot
expect_exit 65 "$fourfold" ckpt verify lost
expect_stdout "step-000000006: DAMAGED"
expect_stdout "is a link to $PWD/not/mounted, which cannot be reached"
expect_stdout 'is a file, not a folder'
expect_stderr 'step-10: is passed over'
expect test "$(grep -c 'lost+found\|snapshot' "$errors" "$output" | tr -d '\n')" = "${errors}:0${output}:0"
expect_exit 0 "$fourfold" evaluate lost --data tokens --samples 1
expect_stdout '(step 2)'
expect_stderr 'step-000000006: is passed over: it is a link'
expect_exit 0 "$fourfold" ckpt gc lost --keep-last 1 --dry-run --json
expect python3 -c 'import json, sys
facts = json.load(open(sys.argv[1]))
assert [entry["path"].rsplit("/", 1)[1] for entry in facts["passed_over"]] == ["step-000000004", "step-000000006", "step-10"], facts' "$output"
rm -r lost/checkpoints/step-000000002
for mode in auto never; do
  expect_exit 65 "$fourfold" train run.toml --set log.dir=lost --resume=$mode
  expect_stderr 'this run would begin anew'
done
expect_exit 65 "$fourfold" train run.toml --set log.dir=lost --resume=old/step-000000004
expect_stderr 'this run would begin again at step 4'
expect test -L lost/checkpoints/step-000000006
rm lost/checkpoints/step-000000006 lost/checkpoints/step-000000004
expect_exit 78 "$fourfold" train run.toml --set log.dir=lost --set train.steps=2
expect_stderr 'has the record of a run that has saved step 6'
expect_exit 0 "$fourfold" train run.toml --set log.dir=lost --set train.steps=2 --resume=never
expect_stderr 'step 6 was the last one that was saved there, and it is not there any more: this run begins anew'
expect_exit 78 "$fourfold" ckpt import --format llm.c no.bin lost/checkpoints
# Only the newest is gone: an older one is taken, and that is said.
to_six=("$fourfold" train run.toml --set log.dir=purged --set train.steps=6 --set checkpoint.keep_last=0)
expect_exit 0 "${to_six[@]}"
rm -r purged/checkpoints/step-000000006
expect_exit 0 "$fourfold" evaluate --data tokens --samples 1 purged
expect_stderr 'purged/checkpoints/LATEST: step 6 was the last one that was saved there, and it is not there any more: step 4 is used instead'
expect_exit 0 "${to_six[@]}"
expect_stderr 'step 4 is used instead'
expect_exit 0 "$fourfold" evaluate --data tokens --samples 1 purged
! grep -q 'is used instead' "$errors" || complain 'a step is told lost after its save'

# Tokens of which nobody knows what made them.
cp tokens.bin bare.bin && cp tokens.idx bare.idx
expect_exit 0 "$fourfold" evaluate run --data bare --samples 1
expect_stderr 'bare.bin: whether the tokens are of the tokenizer that the model was trained with is not known (no record says which one made them)'

# Somebody's file called LATEST is in the way of whatever writes steps beside it.
mkdir theirs && echo 'my latest notes' >theirs/LATEST
expect_exit 78 "$fourfold" ckpt reshard run theirs --to dp=2
expect_stderr 'theirs/LATEST: is not a file that fourfold wrote'
expect_exit 0 "$fourfold" ckpt export --format hf run hf
expect_exit 78 "$fourfold" ckpt import hf theirs
expect_exit 78 "$fourfold" ckpt import hf hf/. # the folder of the model itself
expect_stderr 'is the folder of the model that is imported'
expect test "$(ls -A theirs)" = LATEST
expect grep -qx 'my latest notes' theirs/LATEST
# Above a link is above what it leads to: the run file of an import names the step that was written, and status finds the run.
mkdir -p else/exp home && ln -s ../else/exp home/link
expect_exit 0 "$fourfold" ckpt import hf home/link/../imported
expect grep -q "^resume = .*\"$(realpath else)/imported/step-000000000\"" else/imported/run.toml
expect_exit 0 "$fourfold" train run.toml --set log.dir=home/link/../there
expect_exit 0 "$fourfold" status home/link/../there
expect_stdout 'there: finished'
rm -r hf else home

# Nothing replaces a link that somebody made, not even one that leads nowhere.
ln -s no/such merged.h5
expect_exit 73 "$fourfold" ckpt merge run merged.h5
expect_stderr 'merged.h5: exists already'
expect_exit 73 "$fourfold" ckpt export --format hf run merged.h5
expect test "$(readlink merged.h5)" = no/such

# Progress is there from the beginning, also where all is over at once.
for verb in 'verify --deep run' 'diff run lost' 'merge run one.h5' 'export --format hf run hf-out' 'reshard run recut --to dp=2' 'import --format hf hf-out back'; do
  # shellcheck disable=SC2086  # words
  "$fourfold" ckpt $verb --progress bar >"$output" 2>"$errors"
  expect_stderr '[                              ]   0 %'
done

# Where memory is short the advice is the program's own, and it is no crash wherever it ends.
small() { (ulimit -c 0 && ulimit -v "$1" && shift && exec "$@"); }
[[ $1 != *san* ]] || expectations_met || exit 1 # sanitizers take all address space there is
[[ $1 != *san* ]] || exit 0
ckpt=${fourfold%/fourfold}/fourfold-ckpt
# short_of_memory ADVICE VERB...: with less and less than it needs.
short_of_memory() {
  local advice=$1 enough=60000 less
  shift
  until small "$enough" "$ckpt" "$@" >"$output" 2>"$errors" || [[ $enough -gt 1000000 ]]; do
    enough=$((enough + 2000))
  done
  for less in 4000 8000 16000 24000; do
    expect_exit 78 small $((enough - less)) "$ckpt" "$@"
    expect_stderr "out of memory (this host has no more); $advice, or run it where there is more"
  done
}
short_of_memory 'free some there' verify --deep run
short_of_memory 'use a smaller --memory' diff run run

# A prompt whose end is byte tokens, which a decoder holds back until it knows what follows, is printed once.
bytes_tokenizer=$SOURCE_DIR/tests/golden/tokenizers/structures/llama2.json
expect_exit 0 "$fourfold" data prepare --tokenizer "$bytes_tokenizer" --output fallback text.txt
printf '[model]\nlayers = 1\nhidden = 32\nheads = 2\ncontext = 32\n[train]\nglobal_batch = 4\nsteps = 1\n[data]\ntrain = ["fallback"]\n[log]\ndir = "fell"\n' >fell.toml
expect_exit 0 "$fourfold" train fell.toml
for prompt in '日本' 'x🙂' 'Größe 中' 'abc' 'verse'; do
  expect_exit 0 "$fourfold" sample fell --prompt "$prompt" --tokens 0
  expect test "$(cat "$output")" = "$prompt"
done

expectations_met
