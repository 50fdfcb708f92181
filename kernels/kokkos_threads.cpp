// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "threads.hpp"

#include <fourfold/base/error.hpp>

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace fourfold::kernels {

void check_kokkos_threads() {
  const char* const text = std::getenv("KOKKOS_NUM_THREADS");
  if (text == nullptr) {
    return;
  }
  const std::string_view digits = text;
  int threads = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), threads);
  if (error != std::errc{} || end != digits.end() || threads < 1) {
    throw UserError(ExitCode::config,
                    fmt::format("KOKKOS_NUM_THREADS is \"{}\" (no number of threads, and Kokkos "
                                "starts with it) unset it",
                                text));
  }
}

}  // namespace fourfold::kernels
