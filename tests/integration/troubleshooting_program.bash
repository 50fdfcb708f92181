#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Messages of docs/troubleshooting, provoked: thirty of those in provocations, drawn by a seed that is printed. Each comes with the exit
# code that the page says, and the page's fix works. Usage: troubleshooting_program.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
# shellcheck source=tests/integration/small_run.bash
. "$(dirname "$0")/small_run.bash"
seed=${FOURFOLD_SEED-}
count=${FOURFOLD_PROVOCATIONS-30}
here=$(cd "$(dirname "$0")" && pwd)
begin "$1"
unset "${!SLURM_@}" "${!FOURFOLD_@}" OMP_NUM_THREADS

mkdir base && cd base || exit 1
small_run 2 'micro_batch = 2'
printf '%s\n' '[checkpoint]' 'every_steps = 1' >>run.toml
expect_exit 0 "$fourfold" train run.toml
cd ..
expectations_met || exit 1
PATH=$(cd "$(dirname "$fourfold")" && pwd):$PATH FOURFOLD_SEED=$seed FOURFOLD_PROVOCATIONS=$count \
  python3 "$here/troubleshooting_program.py" "$SOURCE_DIR" base
