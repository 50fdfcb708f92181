// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/device.hpp>

#include <Kokkos_Core.hpp>

namespace fourfold::kernels {

/// Starts Kokkos on the device that this process has taken.
inline void start_kokkos() {
  Kokkos::initialize(Kokkos::InitializationSettings().set_device_id(device::device_facts().index));
}

}  // namespace fourfold::kernels
