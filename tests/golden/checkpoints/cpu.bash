#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# What of this CPU decides which instructions are compiled and taken: its vendor, and the extensions that kernels and oneDNN ask for.
set -euo pipefail
flags=$(grep -m1 '^flags' /proc/cpuinfo)
printf '%s' "$(grep -m1 '^vendor_id' /proc/cpuinfo | cut -d: -f2)"
for extension in avx2 fma avx512f avx512_bf16 avx512_fp16 avx_vnni amx_bf16; do
  [[ " $flags " != *" $extension "* ]] || printf ' %s' "$extension"
done
echo
