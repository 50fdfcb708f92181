# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For tests of whole programs: source it, then say what is expected. Each expectation prints what it saw when it does
# not hold; the script that sources this ends with `expectations_met`, which fails if any did not hold.

broken=0
output=$(mktemp)
errors=$(mktemp)
said=$(mktemp) # of what is only expected to succeed
work=''
# What the expectations have written, and the folder of begin(). Not for a process of the script that is killed as it begins,
# and runs the trap of its parent.
clear_away() { [[ $BASHPID != "$$" ]] || rm -rf "$output" "$errors" "$said" ${work:+"$work"}; }
trap clear_away EXIT

# begin BUILD_DIR: from here on the script is in an empty folder, "$work", that goes when it ends; "$fourfold" is the
# program to test.
begin() {
  fourfold=$1/bin/fourfold
  work=$(mktemp -d)
  cd "$work" || exit 1
}

# prepare_text LINES [OPTION...]: text.txt, a verse in each line, and the token file `tokens` made of it; options are of `data prepare`.
prepare_text() {
  seq -f 'verse %.0f: the quick brown fox jumps over the lazy dog' "$1" >text.txt
  expect_exit 0 "$fourfold" data prepare --output tokens --append-eot "${@:2}" text.txt
}

# ranks N VERB...: the program on N ranks.
ranks() { local n=$1 && shift && "$MPIEXEC" -n "$n" "$fourfold" "$@"; }

# complain WHAT...: notes an expectation that does not hold.
complain() {
  broken=$((broken + 1))
  local caller=1 # an expectation of this file, or the script itself
  [[ ${BASH_SOURCE[1]} != "${BASH_SOURCE[0]}" || -z ${BASH_SOURCE[2]-} ]] || caller=2
  printf 'FAILED %s:%s: %s\n' "${BASH_SOURCE[caller]##*/}" "${BASH_LINENO[caller - 1]}" "$*"
  sed 's/^/  stdout| /' "$output" | tail -n 40
  sed 's/^/  stderr| /' "$errors" | tail -n 40
}

# expect_exit CODE COMMAND...: runs it, keeps what it prints for the expectations that follow.
expect_exit() {
  local wanted=$1 code=0
  shift
  "$@" >"$output" 2>"$errors" </dev/null || code=$?
  [[ $code -eq $wanted ]] || complain "exit code $code, not $wanted, from: $*"
}

# What the last command printed contains the text, literally; or does not.
expect_stdout() { grep -qF -- "$1" "$output" || complain "stdout has no '$1'"; }
expect_stderr() { grep -qF -- "$1" "$errors" || complain "stderr has no '$1'"; }
expect_no_stdout() { ! grep -qF -- "$1" "$output" || complain "stdout has '$1'"; }
expect_no_stderr() { ! grep -qF -- "$1" "$errors" || complain "stderr has '$1'"; }
expect_stderr_lines() { [[ $(wc -l <"$errors") -eq $1 ]] || complain "stderr has not $1 lines"; }

# expect COMMAND...: it succeeds.
expect() { "$@" >"$said" 2>&1 || complain "does not hold: $*; it says: $(tail -n 10 "$said")"; }

expectations_met() {
  [[ $broken -eq 0 ]] || printf '%s expectations do not hold\n' "$broken"
  [[ $broken -eq 0 ]]
}
