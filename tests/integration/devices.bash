#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Programs that compute without communicators between devices take their devices all the same. Usage: devices.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"

prepare_text 100
cat >run.toml <<'END'
[model]
family = "gpt2"
layers = 1
hidden = 32
heads = 2
vocab = 257
context = 16
[train]
global_batch = 4
micro_batch = 1
[data]
train = ["tokens"]
END
verify() { "$fourfold" verify run.toml --steps 1 --mesh dp=1 --mesh dp=2; }
doctor() { ranks "$1" doctor --seconds 5; }

expect_exit 0 verify
for old in 70 75; do
  FOURFOLD_EMULATED_GPU_SM=$old expect_exit 78 verify
  expect_stderr 'GPU 0 is too old for this program'
  FOURFOLD_EMULATED_GPU_SM=$old expect_exit 78 doctor 1
  expect_stderr 'GPU 0 is too old for this program'
done
FOURFOLD_EMULATED_GPUS=no-driver expect_exit 78 verify
expect_stderr 'there is no NVIDIA driver'

# last_fails GPUS FAILURE: a rank for each device, of which the last one has the failure.
last_fails() {
  FOURFOLD_EMULATED_GPUS=$1 "$MPIEXEC" -n $(($1 - 1)) "$fourfold" doctor --seconds 5 : \
    -n 1 env FOURFOLD_EMULATED_GPU_FAIL="$2" "$fourfold" doctor --seconds 5
}
# Each rank looks at its own.
expect_exit 85 last_fails 3 cudaLaunchKernel:1:214
expect_stderr 'GPU 2 (Emulated GPU): cudaLaunchKernel failed'
# It is named, also where a thread cannot be bound to it.
expect_exit 85 last_fails 2 cudaSetDevice:1:46
expect_stderr 'GPU 1 (Emulated GPU): cudaSetDevice failed'

# More ranks than devices are found, and a driver that has failed is the node's fault.
FOURFOLD_EMULATED_GPUS=2 expect_exit 78 doctor 3
expect_stdout 'ranks 0, 2 have the same GPU'
FOURFOLD_EMULATED_GPU_FAIL=cudaGetDeviceCount:1:802 expect_exit 85 "$fourfold" train run.toml --set log.dir=run
expect_stderr 'cudaGetDeviceCount failed'

expectations_met
