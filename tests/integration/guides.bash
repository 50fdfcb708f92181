#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The pages on strategies, other systems and verbs: what they print is run as it is printed, and is true. Usage: guides.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"
PATH=$1/bin:$PATH
docs=$SOURCE_DIR/docs
mkdir choosing systems

# page NAME: runs it.
page() { python3 "$SOURCE_DIR/tests/integration/printed_commands.py" --run . --record record.json "$docs/$1"; }

# Which strategy takes how much.
cd choosing || exit 1
expect_exit 0 page choosing.md
expect python3 "$SOURCE_DIR/tests/integration/planned_memory.py" record.json

# The run files that configurations of other systems become: each is planned, without a warning.
cd ../systems || exit 1
expect_exit 0 page from-other-systems.md
expect python3 -c 'import json
record = json.load(open("record.json"))
assert len(record) == 4 and not any(step["stderr"] for step in record), record'

# The page of the verbs has each of them.
expect python3 - "$fourfold" "$docs/verbs.md" <<'END'
import re, subprocess, sys
def verbs(*of):
    said = subprocess.run([sys.argv[1], "help", *of], capture_output=True, text=True, check=True)
    section = re.search(r"^(?:VERBS|SUBCOMMANDS):?\n(.*?)(?:\n\n|\Z)", said.stdout + said.stderr, re.M | re.S | re.I)
    return re.findall(r"^ {2}(\S+) {2,}\S", section[1], re.M) if section else []
whole = [" ".join([verb, inner]).strip() for verb in verbs() for inner in (verb != "help" and verbs(verb)) or [""]]
rows = re.findall(r"^\| (.*?) \|", open(sys.argv[2]).read(), re.M)
assert sorted(whole) == sorted(verb for row in rows for verb in re.findall("`(.*?)`", row)), (whole, rows)
END

expectations_met
