#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The pages on strategies and other systems: what they print is run as it is printed, and is true. Usage: guides.bash BUILD_DIR
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

expectations_met
