// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "kokkos_facts.hpp"
#include "start.hpp"
#include "threads.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/kernels/runtime.hpp>

#include <Kokkos_Core.hpp>
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <system_error>

namespace fourfold::kernels {
namespace {

std::atomic<int> runtime_threads = 1;
int exceptions_at_start = 0;  ///< under way

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

/// OpenMP takes every core when nothing is said, or nothing that it understands; a rank of ours
/// takes one.
int threads_from_environment() {
  const char* const text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr || *text == '\0') {
    return 1;
  }
  if (!is_list_of_threads(text)) {
    throw UserError(ExitCode::config,
                    fmt::format("OMP_NUM_THREADS is \"{}\" (no number of threads, for which OpenMP "
                                "takes every core); set it to one, or unset it",
                                text));
  }
  return omp_get_max_threads();
}

}  // namespace

Runtime::Runtime(int threads) {
  FOURFOLD_EXPECT(threads >= 0);
  FOURFOLD_EXPECT(!Kokkos::is_initialized());
  check_kokkos_threads();
  runtime_threads = threads > 0 ? threads : threads_from_environment();
  // Before Kokkos starts: a Kokkos with OpenMP takes its number of threads from there.
  use_runtime_threads();
  exceptions_at_start = std::uncaught_exceptions();
  start_kokkos();
}

/// While an exception unwinds a device may have failed, of which Kokkos makes an abort that nobody
/// explains, or be in a message from a rank that is gone: Kokkos waits for all that a device does.
/// The process ends soon, and with it what Kokkos has taken.
Runtime::~Runtime() {
  if (!device::has_own_memory || std::uncaught_exceptions() == exceptions_at_start) {
    stop_kokkos();
  } else {
    leave_kokkos();
  }
}

void use_runtime_threads() {
  omp_set_num_threads(runtime_threads);
}

KokkosFacts kokkos_facts() {
  return {.version = KOKKOS_VERSION,
          .execution_space = Kokkos::DefaultExecutionSpace::name(),
          .threads = runtime_threads};
}

}  // namespace fourfold::kernels
