#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# What people type wrongly, in every program, and what a terminal of any width shows of a run.
# Usage: command_lines.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
terminal=$(cd "$(dirname "$0")" && pwd)/on_terminal.py
begin "$1"

# Every program names itself and the option, in one line and the pointer to --help.
verbs=$("$fourfold" help | sed -n '/^VERBS/,/^DESCRIPTION/s/^  \([a-z]*\)  .*/\1/p' | grep -v '^help$')
[ "$(wc -w <<<"$verbs")" -ge 13 ] || complain "verbs are missing: $verbs"
for verb in $verbs; do
  case $verb in
    ckpt) words=(ckpt info) ;;
    data) words=(data info) ;;
    bench) words=(bench comm) ;;
    job) continue ;; # takes the options of train as they are
    *) words=("$verb") ;;
  esac
  expect_exit 64 "$fourfold" "${words[@]}" --qqqqqq 3
  expect_stderr "fourfold ${words[*]}: error: unknown option '--qqqqqq'"
  expect_stderr_lines 2
  # No bound that nobody can read.
  expect_exit 0 "$fourfold" help "${words[@]}"
  if grep -qE '[0-9]{13}' "$output"; then complain "help ${words[*]} has a number too long to read"; fi
done

expect_exit 0 "$fourfold" ckpt export --help
if grep -qE '[0-9]{13}' "$output"; then complain "help ckpt export has a number too long to read"; fi

# A place to write to that only a shell would find, in each program that is given one; a value of a run file likewise.
# shellcheck disable=SC2088  # as it stands
for words in 'data prepare text.txt --output ~/x' 'report run -o ~/x.html' 'evaluate run --data tokens --logits ~/x.h5' \
  'plan run.toml --svg ~/x' 'plan run.toml --trace ~/x' 'plan run.toml --csv ~/x' 'bench comm --csv ~/x' 'bench comm --svg ~/x' \
  'status run --prometheus ~/x' 'ckpt merge run ~/x' 'ckpt reshard run ~/x --to dp=2' 'ckpt export --format hf run ~/x' 'ckpt import model ~/x'; do
  # shellcheck disable=SC2086  # words
  expect_exit 64 "$fourfold" $words
  expect_stderr 'begins with ~ (only a shell reads that as your home; here it would be a folder of that name); write the whole path'
done
expect test ! -e '~'

# Keys of the run file that are typed as options: in each program that takes one.
for verb in train plan submit verify doctor; do
  expect_exit 64 "$fourfold" $verb run.toml --steps-per-epoch 2
  expect_stderr "fourfold $verb: error: unknown option '--steps-per-epoch'"
  expect_exit 64 "$fourfold" $verb run.toml --global-batch 64
  expect_stderr "fourfold $verb: error: unknown option '--global-batch'; did you mean '--set train.global_batch=64'?"
done
expect_exit 64 "$fourfold" train gpt2.toml --steps 100
expect_stderr "fourfold train: error: unknown option '--steps'; did you mean '--set train.steps=100'?"
expect_exit 64 "$fourfold" train --lr=1e-3 gpt2.toml
expect_stderr "did you mean '--set optim.lr=1e-3'?"
expect_exit 64 "$fourfold" sample --temp 0
expect_stderr "fourfold sample: error: unknown option '--temp'; did you mean '--temperature'?"
expect_exit 64 "$fourfold" train gpt2.toml --model.layers 3
expect_stderr "unknown option '--model.layers'; did you mean '--set model.layers=3'?"
for verb in train plan; do
  expect_exit 64 "$fourfold" "$verb" gpt2.toml --batch-size=8
  expect_stderr "unknown option '--batch-size'; did you mean '--set train.global_batch=8' or '--set train.micro_batch=8'?"
done
for words in '--learning-rate 3 optim.lr' '--max_steps 3 train.steps' '--num-layers 3 model.layers' '--seq-len 3 model.context' \
  '--tensor-model-parallel-size 2 mesh.tp' '--training.local_batch_size 4 train.micro_batch' '--rms_norm_eps 1e-6 model.norm_epsilon'; do
  read -r option value key <<<"$words"
  expect_exit 64 "$fourfold" train gpt2.toml "$option" "$value"
  expect_stderr "unknown option '$option'; did you mean '--set $key=$value'?"
done
expect_exit 64 "$fourfold" sample x --prompt y --max-new-tokens 3
expect_stderr "unknown option '--max-new-tokens'; did you mean '--tokens'?"
# Values that are no values.
expect_exit 64 "$fourfold" plan run.toml --rank
expect_stderr 'fourfold plan: error: --rank needs a value after it'
expect_exit 64 "$fourfold" sample --checkpoint a --checkpoint b --prompt y
expect_stderr 'fourfold sample: error: --checkpoint is given more than once; give it once'
# Each of them, in the order in which they were typed.
both_told() { # both_told FIRST SECOND COMMAND...
  local first=$1 second=$2
  shift 2
  expect_exit 64 "$fourfold" "$@"
  expect_stderr "error: $first"
  expect_stderr "  $second"
}
both_told "unknown option '--bogus'" '--set needs a value after it' train run.toml --bogus --set
both_told "unknown option '--foo'" '--tokens: x is no whole number' sample run --foo --tokens x
both_told '--tokens: x is no whole number' "unknown option '--foo'" sample run --tokens=x --foo
both_told "unknown option '--bogus'" '--keep-last: ' ckpt gc run --bogus --keep-last -1
for seed in -1 1.5 18446744073709551616 99999999999999999999999; do
  expect_exit 64 "$fourfold" sample a --prompt y --seed "$seed"
  expect_stderr "fourfold sample: error: --seed: $seed is "
done
expect_exit 64 "$fourfold" sample --ckpt x --prompt y
expect_stderr "unknown option '--ckpt'; did you mean '--checkpoint'?"
expect_exit 64 "$fourfold" ckpt gc x --keep 3
expect_stderr "unknown option '--keep'; did you mean '--keep-last' or '--keep-every' or '--keep-best'?"
# No answer where there is none to give: not --help, and nothing that the program lacks.
for words in 'ckpt info x --keep 3' 'ckpt info x --hel' 'data info x --ckpt y' 'train gpt2.toml --data.layers 3'; do
  # shellcheck disable=SC2086  # words
  expect_exit 64 "$fourfold" $words
  ! grep -qF 'did you mean' "$errors" || complain "$words is told what was not asked for"
done
expect_exit 64 "$fourfold" data prepair x
expect_stderr "fourfold data: error: there is no verb 'prepair'; did you mean 'prepare'?"
expect_exit 64 "$fourfold" ckpt inof x
expect_stderr "fourfold ckpt: error: there is no verb 'inof'; did you mean 'info'?"

# What comes after a wrong verb is not complained about, and what there is is said.
expect_exit 64 "$fourfold" data prep --output x text.txt
expect_stderr "fourfold data: error: there is no verb 'prep'; did you mean 'prepare'?"
expect_stderr_lines 2
expect_exit 64 "$fourfold" ckpt list run
expect_stderr "fourfold ckpt: error: there is no verb 'list'; there are "
expect_stderr_lines 2
expect_exit 0 "$fourfold" ckpt help
expect_stdout 'import'
expect_exit 0 "$fourfold" ckpt help export
expect_stdout '--shard-size'
expect_exit 64 "$fourfold" ckpt help exprot
expect_stderr "did you mean 'export'?"

# Numbers out of bounds: the bound in words.
wrong_number() {
  local said=$1
  shift
  expect_exit 64 "$fourfold" "$@"
  expect_stderr "error: $said"
  if grep -qE '[0-9]{13}' "$errors"; then complain "a bound that nobody can read: $(cat "$errors")"; fi
}
wrong_number '--micro-batches: 0 is no whole number of at least 1' plan --schedule 1f1b --stages 4 --micro-batches 0
wrong_number '--stages: -1 is no whole number of at least 1' plan --schedule 1f1b --stages -1 --micro-batches 4
wrong_number '--gpu: 130 is more than 129' plan run.toml --gpu 130
wrong_number '--rank: 1.5 is no whole number of at least 0' plan run.toml --rank 1.5
wrong_number '--cp: 0 is no whole number of at least 1' evaluate --checkpoint x --data y --cp 0
wrong_number '--samples: -1 is no whole number of at least 0' evaluate --checkpoint x --data y --samples -1
wrong_number '--top-k: -2 is no whole number of at least 0' sample --checkpoint x --prompt y --top-k -2
wrong_number '--tokens: 9999999999 is more than 2147483647' sample --checkpoint x --prompt y --tokens 9999999999
wrong_number '--chain: 0 is no whole number of at least 1' submit run.toml --chain 0
for memory in 0 -1 nan 1e7; do
  wrong_number "--node-memory: $memory is no number above 0 and at most 1000000" submit run.toml --node-memory "$memory"
done
wrong_number '--steps: 0 is no whole number from 1 to 1000000' verify run.toml --mesh dp=1 --steps 0
wrong_number '--most-starts: -1 is no whole number of at least 0' job begin run.toml --most-starts -1
wrong_number '--show: -1 is no whole number from 0 to 1000000' data info x --show -1
wrong_number '--threads: 0 is no whole number from 1 to 256' bench comm --threads 0

# The second word of a question for help counts.
expect_exit 0 "$fourfold" help data prepare
expect_stdout '--validation-fraction'
expect_exit 0 "$fourfold" help ckpt export
expect_stdout '--format'
expect_exit 64 "$fourfold" help ckpt exprot
expect_stderr "fourfold ckpt: error: there is no verb 'exprot'; did you mean 'export'?"
# So does one that names a table or a key of the run file, also as other trainers call it.
expect_exit 0 "$fourfold" help train optim
expect_stdout '  clip_norm = 1.0'
! grep -q '^\[model\]\|Usage' "$output" || complain 'help train optim shows more than that table'
for name in optim.lr lr '[optim]' learning_rate; do
  expect_exit 0 "$fourfold" help train "$name"
  expect_stdout '  lr = 0.0006'
done
expect_exit 64 "$fourfold" help train optimm
expect_stderr "fourfold train: error: no table and no key of the run file is called 'optimm'; fourfold help train shows all"

# Each page has examples, of that verb, with options that it has.
for page in $verbs 'bench comm' 'job begin' 'job end' 'data prepare' 'data info' ckpt\ {info,verify,repair-index,diff,reshard,merge,export,import,gc}; do
  # shellcheck disable=SC2086  # words
  expect_exit 0 "$fourfold" help $page
  sed -n '/^EXAMPLES/,/^$/p' "$output" >examples.txt
  grep -qE "fourfold (help )?$page" examples.txt || complain "help $page has no example"
  while read -r option; do
    # Those of srun, sbatch and of the verbs of a verb are on other pages.
    case "$page $option" in 'doctor --mpi' | 'doctor --nodes' | 'doctor --ntasks-per-node' | 'bench --library' | 'data --output') continue ;; esac
    grep -q -- "^ .*$option\b" <(sed '/^EXAMPLES/,/^$/d' "$output") || complain "an example of help $page has $option, which $page has not"
  done < <(grep -oE -- ' --[a-z][a-z-]*' examples.txt | sort -u)
done

# Help is as wide as the terminal, and no word is cut; a page that is longer than the terminal waits for its reader.
words_of() { tr -s ' \n' '\n' <"$1" | sed '/^$/d'; }
long_lines() { awk -v most="$1" 'length($0) > most && $0 !~ /^ *[^ ]+$/' "$output"; }
columns=33
for verb in '' $verbs 'ckpt export' 'data prepare'; do
  # shellcheck disable=SC2086  # words
  PAGER='' expect_exit 0 "$fourfold" help $verb
  cp "$output" wide.txt
  [ -z "$(long_lines 100)" ] || complain "help $verb is wider than 100 columns: $(long_lines 100)"
  columns=$((columns + 7)) # another width for each
  [ $columns -le 90 ] || columns=40
  # shellcheck disable=SC2086
  PAGER='' expect_exit 0 python3 "$terminal" page $columns "$fourfold" help $verb
  [ -z "$(long_lines $columns)" ] || complain "help $verb is wider than $columns columns: $(long_lines $columns)"
  cmp -s <(words_of wide.txt) <(words_of "$output") || complain "help $verb has other words on $columns columns"
done
for pager in 'less -FRX' 'less'; do
  PAGER=$pager expect_exit 0 python3 "$terminal" page 80 "$fourfold" help train
  [ "$(wc -l <"$output")" -le 30 ] || complain "$pager shows $(wc -l <"$output") lines on 24"
  expect_stdout 'Usage: fourfold train'
  expect_no_stdout 'start_s = 300.0'
done
for pager in '' cat /does/not/exist; do
  PAGER=$pager expect_exit 0 python3 "$terminal" page 80 "$fourfold" help train
  expect_stdout '  start_s = 300.0'
done
PAGER='less -FRX' expect_exit 0 python3 "$terminal" page 80 "$fourfold" help train watchdog
expect_stdout '  start_s = 300.0'

# The bar of a run: tokens per second and time left on any terminal, and nothing that wraps.
for i in $(seq 200); do printf 'line %d of a short text\n' "$i"; done >text.txt
expect_exit 0 "$fourfold" data prepare --output tokens text.txt
cat >run.toml <<'END_OF_FILE'
[model]
layers = 1
hidden = 16
heads = 2
vocab = 257
context = 16
[train]
global_batch = 4
micro_batch = 2
steps = 40
[data]
train = ["tokens"]
END_OF_FILE
for columns in 100 80 60 40; do
  expect_exit 0 python3 "$terminal" bar "$columns" "$fourfold" train run.toml --set log.dir=run$columns --set checkpoint.dir=run$columns/c \
    --set checkpoint.every_steps=0
  grep -q 'step 40/40 .*tok/s [0-9.]*[kM]* .*eta 0ms' "$output" || complain "$columns columns: $(cat "$output")"
  if [ "$columns" -ge 60 ]; then expect_stdout ' loss '; fi
  if [ "$columns" -ge 80 ]; then expect_stdout '] step 40/40 100.0% loss '; fi
  if [ "$columns" -ge 100 ]; then expect_stdout ' lr '; fi
done

# What takes long without steps of training says how far it is, from the beginning.
expect_exit 0 python3 "$terminal" bar 80 "$fourfold" evaluate --checkpoint run80/c --data tokens
[[ $(head -n 1 "$output") == '  0 %  0 of '*' samples' ]] || complain "evaluate shows at first: $(cat "$output")"
expect_exit 0 python3 "$terminal" bar 80 "$fourfold" verify run.toml --mesh dp=1 --mesh dp=2
[[ $(head -n 1 "$output") == 'reference dp=1, step 1    0 %  0 of 15 steps' ]] || complain "verify shows at first: $(cat "$output")"
for verb in 'evaluate --checkpoint run80/c --data tokens' 'verify run.toml --mesh dp=1 --mesh dp=2'; do
  # shellcheck disable=SC2086 # words
  expect_exit 0 "$fourfold" $verb --progress none
  # Which GPUs they are is no progress.
  if grep -v ' NCCL [0-9.]*$' "$errors"; then complain "$verb says more than its result"; fi
done

# Without progress a run that is sound says nothing, and a check still answers.
expect_exit 0 "$fourfold" train run.toml --set log.dir=quiet --set checkpoint.dir=quiet/c --progress none
expect_stderr_lines 0
expect_exit 0 "$fourfold" train run.toml --set log.dir=quiet --set checkpoint.dir=quiet/c --progress none --dry-run
expect_stderr 'everything is in place'

# Options that stand for --set count in the order in which they are typed, and a line says which are given twice.
for words in 'auto --resume=never --set=checkpoint.resume=auto' 'never --set checkpoint.resume=auto --resume never' \
  'never --resume-weights-only=x --set checkpoint.resume=never' 'x --set checkpoint.resume=never --resume-weights-only x'; do
  read -r last typed <<<"$words"
  # shellcheck disable=SC2086 # words
  expect_exit 0 "$fourfold" train run.toml --print-config $typed
  expect_stdout "resume = \"$last\""
  expect_stderr 'checkpoint.resume is given more than once on the command line, with different values: the last one counts'
done
expect_exit 0 "$fourfold" train run.toml --print-config --progress=none --set log.progress=plain
expect_stdout 'progress = "plain"'
expectations_met
