#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The command line `fourfold` and the installation. Usage: cli.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
build=$1
prefix=$(mktemp -d)
trap 'rm -rf "$prefix" && clear_away' EXIT

# The same questions to the build tree and to an installation, which keeps the verbs in another folder.
ask() {
  local fourfold=$1
  expect_exit 64 "$fourfold"
  expect_stderr "SYNOPSIS"
  expect_exit 0 "$fourfold" --help
  for section in NAME SYNOPSIS VERBS EXAMPLES FILES "EXIT CODES"; do
    expect_stdout "$section"
  done
  expect_stdout "  version    Show version"
  expect_exit 0 "$fourfold" help version
  expect_stdout "fourfold version"
  expect_stdout "--json"

  expect_exit 0 "$fourfold" version
  expect_stdout "fourfold 0."
  expect_exit 0 "$fourfold" version --json
  expect python3 -c 'import json, sys; facts = json.load(open(sys.argv[1])); facts["libraries"]["HDF5"]' "$output"

  expect_exit 64 "$fourfold" vresion
  expect_stderr "did you mean 'version'?"
  expect_stderr_lines 1
  expect_exit 64 "$fourfold" ../bin/fourfold-version
  expect_exit 64 "$fourfold" ""
  expect_exit 64 "$fourfold" --jsno
  expect_exit 64 "$fourfold" version --jsno
  expect_stderr "--jsno"
}

ask "$build/bin/fourfold"

expect_exit 0 cmake --install "$build" --prefix "$prefix"
expect test -x "$prefix/libexec/fourfold/fourfold-version"
expect test -e "$prefix/share/doc/fourfold/LICENSE"
ask "$prefix/bin/fourfold"

# A verb that needs no ranks loads no MPI; one that is not installed is neither listed nor found.
expect_exit 0 ldd "$prefix/libexec/fourfold/fourfold-version"
expect_no_stdout libmpi
rm "$prefix/libexec/fourfold/fourfold-version"
expect_exit 0 "$prefix/bin/fourfold" help
expect_no_stdout "Show version"
expect_exit 64 "$prefix/bin/fourfold" version

# A machine whose name is too long for UCX: programs may end before their main then, and this one says why.
# named LENGTH VERB: on a machine with a name of so many letters.
# shellcheck disable=SC2016 # expanded there
named() { unshare --uts bash -c 'hostname "$(printf "%0*d" "$1" 0 | tr 0 n)" && exec "$2" "$3"' named "$1" "$build/bin/fourfold" "$2"; }
if unshare --uts true 2>/dev/null; then
  expect_exit 0 named 64 version
  expect_stderr 'the name of this machine has 64 letters'
  expect_exit 0 named 63 version
  expect_stderr_lines 0
else
  echo "a machine cannot be given another name here: a long one is not tried"
fi
expectations_met
