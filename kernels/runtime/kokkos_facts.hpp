// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fourfold::kernels {

/// What only a *.kokkos.cpp can tell: those are compiled by nvcc too, which cannot read fmt.
struct KokkosFacts {
  int version = 0;  ///< 10000 major + 100 minor + patch
  const char* execution_space = "";
  int threads = 1;  ///< of this rank
};
KokkosFacts kokkos_facts();

}  // namespace fourfold::kernels
