// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kokkos_errors.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/device/device.hpp>

#include <Kokkos_Core.hpp>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <tuple>

namespace fourfold::kernels {

/// Starts Kokkos on the device that this process has taken.
inline void start_kokkos() {
  const int index = device::device_facts().index;
  watch_kokkos_aborts();
  with_errors_told("Kokkos::initialize", [&] {
    Kokkos::initialize(Kokkos::InitializationSettings().set_device_id(index));
  });
}

/// What goes wrong then is told, and nothing more: all is done.
inline void stop_kokkos() noexcept {
  try {
    with_errors_told("Kokkos::finalize", [] { Kokkos::finalize(); });
  } catch (const std::exception& failure) {
    log::local(log::Level::warning, failure.what());
  }
}

/// Kokkos stays as it is until the process ends. Then it would complain, after the words that say
/// why the process ends: that is left out, with all that comes at an exit.
inline void leave_kokkos() noexcept {
  std::ignore = ::on_exit(
      [](int code, void* /*nothing*/) {
        std::fflush(nullptr);
        ::_exit(code);
      },
      nullptr);
}

}  // namespace fourfold::kernels
