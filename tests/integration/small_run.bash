# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The run that tests of a run's folders, starts and ends train: source it after expect.bash, in the folder of begin().

# small_run STEPS [LINE_OF_TRAIN...]: text.txt, its tokens, and run.toml, which trains one small layer on them. [log] stands last:
# what is appended belongs there, or begins with a table.
small_run() {
  local steps=$1
  shift
  prepare_text 60
  {
    printf '%s\n' '[model]' 'layers = 1' 'hidden = 32' 'heads = 2' 'vocab = 257' 'context = 32' \
      '[train]' 'global_batch = 4' "steps = $steps" "$@" '[data]' 'train = ["tokens"]' '[log]' 'dir = "run"'
  } >run.toml
}
