// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "threads.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

namespace fourfold::kernels {
namespace {

/// More than any machine has cores.
constexpr int most_threads = 4096;

/// "4", or one number for each level of nesting: "4,2".
bool is_list_of_threads(std::string_view text) {
  for (;;) {
    const std::size_t comma = std::min(text.find(','), text.size());
    int threads = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + comma, threads);
    if (error != std::errc{} || end != text.data() + comma || threads < 1) {
      return false;
    }
    if (comma == text.size()) {
      return true;
    }
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

void check_kokkos_threads() {
  const char* const text = std::getenv("KOKKOS_NUM_THREADS");  // Kokkos takes an empty one, too
  if (text == nullptr) {
    return;
  }
  const std::string_view digits = text;
  int threads = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), threads);
  if (error != std::errc{} || end != digits.end() || threads < 1 || threads > most_threads) {
    throw UserError(ExitCode::config,
                    format_message("KOKKOS_NUM_THREADS is \"{}\" (no number of threads up to {}, "
                                   "and Kokkos starts with it); unset it",
                                   text, most_threads));
  }
}

int threads_from_environment() {
  const std::string text = environment_text("OMP_NUM_THREADS");
  if (text.empty()) {
    return 1;
  }
  if (!is_list_of_threads(text)) {
    throw UserError(ExitCode::config,
                    format_message("OMP_NUM_THREADS is \"{}\" (no number of threads, for which "
                                   "OpenMP takes every core); set it to one, or unset it",
                                   text));
  }
  const int threads = omp_get_max_threads();
  if (threads > most_threads) {
    throw UserError(ExitCode::config,
                    format_message("OMP_NUM_THREADS is \"{}\" (more than {}, with which OpenMP can "
                                   "end without a word); set it to the cores of a rank",
                                   text, most_threads));
  }
  return threads;
}

}  // namespace fourfold::kernels
