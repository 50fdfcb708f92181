// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kokkos_errors.hpp"

#include <fourfold/device/device.hpp>

#include <Kokkos_Core.hpp>

namespace fourfold::kernels {

/// Starts Kokkos on the device that this process has taken.
inline void start_kokkos() {
  const int index = device::device_facts().index;
  with_errors_told("Kokkos::initialize", [&] {
    Kokkos::initialize(Kokkos::InitializationSettings().set_device_id(index));
  });
}

}  // namespace fourfold::kernels
