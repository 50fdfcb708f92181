// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

namespace fourfold::kernels {

/// Starts Kokkos.
inline void start_kokkos() {
  Kokkos::initialize();
}

}  // namespace fourfold::kernels
