#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Manual pages and completions, as an installation has them, in man, bash and zsh.
# Usage: manual.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
complete=$(cd "$(dirname "$0")" && pwd)/complete_in_shell.py
begin "$1"
build=$1

expect_exit 0 cmake --install "$build" --prefix "$PWD/there"
pages=there/share/man/man1
declare -A completions=([bash]=$PWD/there/share/bash-completion/completions/fourfold [zsh]=$PWD/there/share/zsh/site-functions/_fourfold)
verbs=$("$fourfold" help | sed -n '/^VERBS/,/^DESCRIPTION/s/^  \([a-z]*\)  .*/\1/p' | grep -v '^help$')
for verb in $verbs ckpt-{info,verify,repair-index,diff,reshard,merge,export,import,gc} data-{prepare,info} bench-comm job-{begin,end}; do
  expect test -s "$pages/fourfold-$verb.1"
done

# Each page without a warning, with each option and each line of its sections.
if [ -n "$(type -P man)" ]; then
  for page in "$pages"/*.1; do
    name=$(basename "$page" .1)
    words=${name#fourfold} && words=${words#-}
    case $words in ckpt-* | data-* | bench-* | job-*) words=${words/-/ } ;; esac
    # shellcheck disable=SC2086  # words
    expect_exit 0 env COLUMNS=100000 PAGER=cat "$fourfold" help $words
    cp "$output" help.txt
    expect_exit 0 env MANWIDTH=200 man --warnings=w,mac -E UTF-8 -l "$page"
    expect_stderr_lines 0
    tr -s ' \n' '\n' <"$output" | sort -u >shown.txt
    for option in $(grep -oE '^ +-[^ ]+' help.txt | tr , '\n' | grep -oE -- '-[a-z-]+'); do
      grep -qE -- "(^|,)$option(\$|,)" shown.txt || complain "$page lacks $option"
    done
    # Sections are as they are in help, line by line.
    missing=$(sed -n '/^[A-Z][A-Z ]*$/,$p' help.txt | sed 's/^ *//; s/  */ /g' | grep -v '^$\|^NAME\|^fourfold - ' |
      grep -vxFf <(sed 's/^ *//; s/  */ /g' "$output") | head -n 3)
    [ -z "$missing" ] || complain "$page lacks: $missing"
  done
else
  echo "there is no man here: no page is shown"
fi

# completes SHELL COMPLETION LINE WORDS: what the line is after a tab.
completes() {
  expect_exit 0 timeout 120 python3 "$complete" "$1" "$2" "$3"
  [ "$(cat "$output")" = "$4" ] || complain "$1: '$3' becomes $(cat "$output"), not $4"
}
for shell in bash zsh; do
  if [ -z "$(type -P $shell)" ]; then
    echo "there is no $shell here: its completion is not tried"
    continue
  fi
  completes $shell "${completions[$shell]}" 'fourfold eval' '[evaluate]'
  completes $shell "${completions[$shell]}" 'fourfold ckpt exp' '[ckpt][export]'
  completes $shell "${completions[$shell]}" 'fourfold plan --micro-b' '[plan][--micro-batches]'
  completes $shell "${completions[$shell]}" 'fourfold ckpt export --dtype b' '[ckpt][export][--dtype][bf16]'
  completes $shell "${completions[$shell]}" 'fourfold train run.toml --set optim.wei' '[train][run.toml][--set][optim.weight_decay=]'
  completes $shell "${completions[$shell]}" 'fourfold help data prep' '[help][data][prepare]'
  completes $shell "${completions[$shell]}" 'fourfold help train watch' '[help][train][watchdog]'
  completes $shell "${completions[$shell]}" 'fourfold bench comm --oper' '[bench][comm][--operation]'
done
touch run-of-mine.toml
printf 'cd %q\n' "$PWD" >here.bash
cat "${completions[bash]}" >>here.bash
completes bash "$PWD/here.bash" 'fourfold train run-of' '[train][run-of-mine.toml]'
expectations_met
