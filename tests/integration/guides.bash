#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The page on strategies: what it prints is run as it is printed, and is true. Usage: guides.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"
PATH=$1/bin:$PATH
docs=$SOURCE_DIR/docs
mkdir choosing

# page NAME: runs it.
page() { python3 "$SOURCE_DIR/tests/integration/printed_commands.py" --run . --record record.json "$docs/$1"; }

# Which strategy takes how much.
cd choosing || exit 1
expect_exit 0 page choosing.md
expect python3 "$SOURCE_DIR/tests/integration/planned_memory.py" record.json

expectations_met
