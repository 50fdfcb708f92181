#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Every run file in configs/ is understood, without warnings. Usage: configs.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
fourfold=$1/bin/fourfold

for config in "$SOURCE_DIR"/configs/*.toml; do
  expect_exit 0 "$fourfold" train "$config" --print-config
  expect_stdout "[model]"
  expect_stderr_lines 0
done
expect_exit 78 "$fourfold" train "$SOURCE_DIR/configs/quickstart.toml" --set model.layrs=3 --print-config
expect_stderr 'did you mean "layers"'

expectations_met
