# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For tests of ranks that are not alike: source it after expect.bash.

# other_build VERB: ./other-VERB, a program like the one of that verb, which says that it was built from another commit.
# shellcheck disable=SC2154  # fourfold: of begin()
other_build() {
  local verb=$1 program
  program=$(readlink -f "$(dirname "$fourfold")/fourfold-$verb")
  [[ -x $program ]] || program=$(dirname "$fourfold")/../libexec/fourfold/fourfold-$verb
  FOURFOLD_HERE=$fourfold python3 - "$program" "other-$verb" <<'END'
import json, os, subprocess, sys
commit = json.loads(subprocess.run([os.environ["FOURFOLD_HERE"], "version", "--json"], capture_output=True, check=True).stdout)["commit"]
program = open(sys.argv[1], "rb").read()
# Also where a compiler has put it into instructions, eight bytes at a time.
begin = commit[:8].encode()
assert begin in program, commit
open(sys.argv[2], "wb").write(program.replace(begin, b"f" * len(begin)))
os.chmod(sys.argv[2], 0o755)
END
}
