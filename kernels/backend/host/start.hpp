// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

namespace fourfold::kernels {

/// Starts Kokkos, where it computes on the host: an emulated device's does too.
inline void start_kokkos() {
  Kokkos::initialize();
}

inline void stop_kokkos() {
  Kokkos::finalize();
}

inline void leave_kokkos() {}

}  // namespace fourfold::kernels
