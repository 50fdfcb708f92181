#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# fourfold data as users call it, and its tokens on the quickstart's text. Usage: data_program.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
golden=$SOURCE_DIR/tests/golden
begin "$1"

expect_exit 0 "$fourfold" data --help
expect_stdout prepare
expect_exit 0 "$fourfold" data prepare --help
expect_stdout "--validation-fraction"
expect_stdout "EXIT CODES"
expect_exit 64 "$fourfold" data
expect_exit 64 "$fourfold" data prepare
expect_exit 64 "$fourfold" data prepare --output x --validation-fraction 1.5 a.txt
expect_exit 64 "$fourfold" data prepare --output x --validation-fraction nan a.txt
expect_exit 64 "$fourfold" data prepare --output x --document-separator '\q' "$golden/tokenizers/nasty.txt"
expect_stderr "only \\n, \\t"
# shellcheck disable=SC2088  # as it stands
for home in '~' '~/x'; do
  expect_exit 64 "$fourfold" data prepare --output "$home" "$golden/tokenizers/nasty.txt"
  expect_stderr "$home begins with ~ (only a shell reads that as your home"
done
expect test ! -e '~'

# Prepare, look, and prepare again over the old files.
printf 'one\n--\ntwo\n--\nthree\n' >a.txt
for _ in 1 2; do
  expect_exit 0 "$fourfold" data prepare --output out --append-eot --document-separator '--\n' --vocab-check a.txt
  expect_stdout "out.bin: 17 tokens in 3 documents, read again and found right"
done
expect test "$(ls)" = $'a.txt\nout.bin\nout.idx\nout.json'
expect_exit 0 "$fourfold" data info out.bin --show 5
expect_stdout "Megatron .bin/.idx, u16"
expect_stdout "17, from 10 to 256"
expect_stdout "111 110 101 10 256"
expect_exit 0 "$fourfold" data info 'out*' --json --show 4
expect python3 -c 'import json, sys
(facts,) = json.load(open(sys.argv[1]))
assert (facts["tokens"], facts["documents"], facts["largest_token"], facts["first_text"]) == (17, 3, 256, "one\n")' "$output"

# Bad input: one message, the right code, nothing left behind.
expect_exit 78 "$fourfold" data prepare --output bad missing.txt
expect_stderr "missing.txt: cannot be opened"
expect_stderr_lines 1
: >empty.txt
expect_exit 65 "$fourfold" data prepare --output bad empty.txt
expect_exit 73 "$fourfold" data prepare --output a.txt/bad a.txt
expect_stderr 'a.txt: cannot be written (mkdir: Not a directory); choose another folder or name'
# The first command of a new user: there is no folder yet. One empty file of many is left out.
expect_exit 0 "$fourfold" data prepare --output new/deep/set a.txt empty.txt
expect_stderr 'empty.txt: is empty, and left out'
expect_exit 0 "$fourfold" data prepare --output alone a.txt
expect cmp alone.bin new/deep/set.bin
expect_exit 78 "$fourfold" data prepare --output bad --tokenizer byet a.txt
expect_exit 73 "$fourfold" data prepare --output /dev/full/x a.txt
expect test -z "$(ls bad* 2>/dev/null)"
head -c 33 out.bin >cut.bin && cp out.idx cut.idx
expect_exit 65 "$fourfold" data info cut.bin
expect_stderr "cut.bin: byte 33: ends inside a token"
expect_exit 78 "$fourfold" data info missing.bin

# What of this text no model can learn, as many places as the tokenizers library says; and what is no UTF-8.
printf 'aZb Z\u00e9' >lost.txt
for case in '4 lacks bytes' '5 lacks bytes, unknown token'; do
  python3 -c 'import json, sys
cases = {case["name"]: case for case in json.load(open(sys.argv[1]))}
json.dump(cases[sys.argv[2]]["tokenizer"], open("lacking.json", "w"))' "$golden/tokenizers/odd.json" "${case#* }"
  expect_exit 0 "$fourfold" data prepare --output lost --tokenizer lacking.json lost.txt
  expect_stderr "${case%% *} places of the text have no token in this vocabulary"
  printf 'abc' >abc.txt
  expect_exit 0 "$fourfold" data prepare --output lost --tokenizer lacking.json abc.txt
  ! grep -q 'have no token' "$errors" || complain 'nothing is lost of abc'
done
# Counted is what the model is given: after the normalizer, and characters that nothing stands for at all.
made_of_words() { # made_of_words NORMALIZER MODEL_FIELDS: a tokenizer of a, b, "ab".
  printf '{"version":"1.0","added_tokens":[],"normalizer":%s,"pre_tokenizer":{"type":"WhitespaceSplit"},"decoder":null,
"model":{"type":"BPE",%s"vocab":{"a":0,"b":1,"ab":2,"<0xC3>":3},"merges":["a b"]}}' "$1" "$2" >words.json
}
printf 'ab AB \u00e9\u00e9 ab\u00e9' >lost.txt
for case in '5 null' '3 {"type":"Lowercase"}' '8 {"type":"NFD"}'; do
  made_of_words "${case#* }" ''
  expect_exit 0 "$fourfold" data prepare --output lost --tokenizer words.json lost.txt
  expect_stderr "${case%% *} places of the text have no token in this vocabulary"
done
made_of_words null '"byte_fallback":true,'
expect_exit 0 "$fourfold" data prepare --output lost --tokenizer words.json lost.txt
expect_stderr '5 places of the text have no token in this vocabulary'
made_of_words '{"type":"Replace","pattern":{"String":"z"},"content":"a"}' ''
printf 'zab ab zb' >abc.txt
expect_exit 0 "$fourfold" data prepare --output lost --tokenizer words.json abc.txt
! grep -q 'have no token' "$errors" || complain 'nothing is lost of zab'
printf 'a\xff\xfeb\u00e9' >odd.txt
expect_exit 0 "$fourfold" data prepare --output odd odd.txt
expect_stderr '2 bytes of the text are not UTF-8'
rm lost* abc.txt odd*

# The kind of a file is told by its content.
printf '{"text": "one"}\n{"text": "two"}\n' >c4.json
expect_exit 0 "$fourfold" data prepare --output kinds c4.json
expect_stdout "6 tokens in 2 documents"
expect_stderr "c4.json: is read as JSON lines"
expect_exit 0 "$fourfold" data prepare --output kinds --format text c4.json
expect_stdout "32 tokens in 1 document"
expect_exit 64 "$fourfold" data prepare --output kinds --format txt c4.json
gzip -k c4.json
expect_exit 78 "$fourfold" data prepare --output bad c4.json.gz
expect_stderr "c4.json.gz: is gzip-compressed"
expect_exit 78 "$fourfold" data info c4.json
expect_stderr "c4.json: is text, not tokens; make token files of it with"
expect_exit 78 "$fourfold" data info c4.json.gz

# No input is replaced, and nothing that another program has made.
printf '{"text": "hello there"}\n' >c.json
expect_exit 78 "$fourfold" data prepare --output c c.json
expect_stderr "c.json: would be replaced, and is an input"
expect_exit 78 "$fourfold" data prepare --output c a.txt
expect_stderr "c.json: is there already, and not made by \`fourfold data prepare\`"
# Beside a record of ours: another's token files.
expect_exit 0 "$fourfold" data prepare --output beside a.txt
printf 'ten years of measurements\n' >beside.bin
cp beside.bin kept.bin
expect_exit 78 "$fourfold" data prepare --output beside a.txt
expect_stderr 'are not the token files that the record beside them describes'
expect cmp beside.bin kept.bin
# A sound pair of another preparation, of other counts, of the same size, and of the same index; tokens without an index.
printf 'other words here\n' >other.txt && tr 'a-y' 'b-z' <a.txt >moved.txt
for text in other.txt moved.txt; do
  expect_exit 0 "$fourfold" data prepare --output theirs "$text"
  expect_exit 0 "$fourfold" data prepare --output fresh a.txt
  cp theirs.bin fresh.bin && cp theirs.idx fresh.idx
  expect_exit 78 "$fourfold" data prepare --output fresh a.txt
  expect_stderr 'are not the token files that the record beside them describes'
  expect cmp theirs.bin fresh.bin
  rm fresh.idx
  expect_exit 78 "$fourfold" data prepare --output fresh a.txt
  expect cmp theirs.bin fresh.bin
  rm fresh.* && rm theirs.*
done
# Its own tokens, whose index was not published yet, and files that hold nothing; what only begins like a record; a folder.
expect_exit 0 "$fourfold" data prepare --output fresh a.txt
cp fresh.idx kept.idx && rm fresh.idx
expect_exit 0 "$fourfold" data prepare --output fresh a.txt
expect cmp kept.idx fresh.idx
head -c 120 fresh.json >cut.json && mv cut.json fresh.json && cp fresh.json kept.json
expect_exit 78 "$fourfold" data prepare --output fresh a.txt
expect_stderr 'fresh.json: line 5, byte 121: is not JSON from here on'
expect cmp kept.json fresh.json
for name in bin idx; do
  mkdir "folder-$name.$name"
  expect_exit 78 "$fourfold" data prepare --output "folder-$name" a.txt
  expect_stderr "folder-$name.$name: is there already"
  expect test ! -e "folder-$name.json"
done
: >nothing.bin && : >nothing.idx
expect_exit 0 "$fourfold" data prepare --output nothing a.txt
# What comes to nothing leaves no folder after either.
printf -- '--\n--\n' >nothing.txt
expect_exit 78 "$fourfold" data prepare --output none/deep/x --document-separator '--\n' nothing.txt
expect_stderr 'none/deep/x.bin would be empty'
expect_exit 0 "$fourfold" data prepare --output whole --document-separator '==\n' a.txt
expect_stderr 'stands nowhere in the text: each file is one document'
expect_exit 0 "$fourfold" data prepare --output whole --document-separator '--\n' a.txt
! grep -q 'stands nowhere' "$errors" || complain 'a separator that is there is missed'
# Of a set that is replaced each file must be one that can be: the older set stays, or is replaced.
for file in whole.bin whole.idx whole.json; do
  sha256sum whole.* >before.txt
  chattr +i $file 2>/dev/null || break # no such file system, or not root
  expect_exit 73 "$fourfold" data prepare --output whole --document-separator '--\n' a.txt
  expect_stderr "$file: is immutable (chattr +i), so it cannot be replaced; undo that, or choose another --output"
  chattr -i $file
  expect sha256sum --check --quiet before.txt
done
rm whole.* before.txt
expect test ! -e none
mkdir vt
expect_exit 78 "$fourfold" data prepare --output vt/tokenizer a.txt
expect_stderr "vt/tokenizer.json: would be the name of the token files' record"
expect test "$(cat c.json)" = '{"text": "hello there"}'
printf '{"mine": true}\n' >kinds.json # beside kinds.bin: tokens without a record
expect_exit 0 "$fourfold" data info kinds.bin
expect_stdout "tokenizer  not recorded"
cp out.json kinds.json
expect_exit 65 "$fourfold" data info kinds.bin
expect_stderr "kinds.json: counts 17 tokens in 3 documents"
rm kinds.*

# Tokens are not read with another tokenizer than the one that made them, unless somebody names it.
cp "$golden/tokenizers/gpt2/vocab.json" words
cp "$golden/tokenizers/gpt2/merges.txt" merges.txt
expect_exit 0 "$fourfold" data prepare --output worded --tokenizer words a.txt
expect_exit 0 "$fourfold" data info worded.bin --show 4
sed -i '$d' merges.txt
expect_exit 78 "$fourfold" data info worded.bin --show 4
expect_stderr "$PWD/words, as it is now, is not the one that worded.json names: $PWD/words, as it was then"
expect_exit 0 "$fourfold" data info worded.bin --show 4 --tokenizer words
expect_stderr 'as it is now, is not the one'
expect_exit 0 "$fourfold" data info worded.bin
rm worded.*

mkdir folder
for place in folder/ folder/. .; do
  expect_exit 78 "$fourfold" data prepare --output "$place" a.txt
  expect_stderr 'its files would have no name; add one'
done
expect rmdir folder

# A place that a pattern leads to and that cannot be looked into: what matches there would be left out without a word.
if [[ $EUID -eq 0 ]] && command -v setpriv >/dev/null; then
  mkdir -p parts/a parts/b && chmod 755 . parts
  for part in a b; do expect_exit 0 "$fourfold" data prepare --output "parts/$part/x" a.txt; done
  chmod 700 parts/b
  user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  if "${user[@]}" test -x "$fourfold"; then
    for pattern in 'parts/*/x' 'parts/*/x.bin' 'parts/*/*.bin' 'parts/[ab]/x'; do
      expect_exit 78 "${user[@]}" "$fourfold" data info "$pattern"
      expect_stderr 'parts/b' && expect_stderr 'Permission denied'
    done
    expect_exit 0 "${user[@]}" "$fourfold" data info 'parts/a/*.bin'
  fi
  # A folder in which names cannot be made to last: an older set there stays as it is.
  mkdir blind && chmod 777 blind
  expect_exit 0 "$fourfold" data prepare --output blind/x a.txt
  sha256sum blind/* >blind.sums
  chmod 333 blind
  if "${user[@]}" test -x "$fourfold"; then
    expect_exit 73 "${user[@]}" "$fourfold" data prepare --output blind/x a.txt a.txt
    expect_stderr 'may be written, but not read'
  fi
  expect sha256sum --quiet --check blind.sums
  expect_exit 0 "$fourfold" data info 'parts/*/x'
  expect_exit 78 "$fourfold" data info 'parts/*/y'
  expect_stderr 'no file matches'
fi

# A signal leaves nothing behind; what a killed process leaves is no data, and goes with the next of its name.
yes 'all work and no play' | head -n 3000000 >long.txt
mkdir tokens
# unfinished SIGNAL: prepares until there are unfinished files, and ends it.
unfinished() {
  "$fourfold" data prepare --output tokens/long --document-separator '\n' --validation-fraction 0.1 long.txt >"$output" 2>"$errors" &
  local process=$! code=0
  for _ in {1..1000}; do
    [[ $(ls -A tokens) != *long_val.json.tmp-* ]] || break
    sleep 0.01
  done
  kill -s "$1" $process
  wait $process 2>/dev/null || code=$?
  [[ $code -eq $((128 + $(kill -l "$1"))) ]] || complain "exit code $code after $1"
}
for signal in TERM HUP USR1 PIPE; do
  unfinished "$signal"
  expect test -z "$(ls -A tokens)"
done
unfinished KILL
expect test "$(find tokens -name '.long_*.tmp-*' | wc -l)" = 6
mkdir tokens/long_val.json.tmp-2 && printf 'mine' | tee tokens/long_train.bin.tmp-20261127 >tokens/long_val.json.tmp-2/thesis.tex
expect_exit 78 "$fourfold" data info 'tokens/.*.tmp-*'
expect_stderr "no file matches this pattern"
expect_exit 0 "$fourfold" data prepare --output tokens/long --document-separator '--' --validation-fraction 0.5 a.txt
expect test "$(find tokens -type f -printf '%f\n' | sort | tr '\n' ' ')" = 'long_train.bin long_train.bin.tmp-20261127 long_train.idx long_train.json long_val.bin long_val.idx long_val.json thesis.tex '
expect_exit 0 "$fourfold" data info 'tokens/*.bin'
rm -r long.txt tokens

# Where the quickstart's text can be had without installing anything, its tokens are those of the tokenizers library.
if ! command -v bible >/dev/null; then
  echo "not compared on the quickstart's text: the program 'bible' is not installed"
else
  echo mine >text.txt
  expect_exit 78 "$SOURCE_DIR/scripts/quickstart-text" text.txt
  expect test "$(cat text.txt)" = mine
  : >text.txt
  expect_exit 0 "$SOURCE_DIR/scripts/quickstart-text" text.txt
  expect_exit 0 "$SOURCE_DIR/scripts/quickstart-text" text.txt # over its own
  for tokenizer in gpt2/vocab.json llama3.json gpt4o.json prefix_space.json words.json; do
    expect_exit 0 "$fourfold" data prepare --output text --tokenizer "$golden/tokenizers/$tokenizer" text.txt
    expect python3 "$golden/check_text_tokens.py" text.bin "${tokenizer%%[./]*}"
  done
fi
expectations_met
