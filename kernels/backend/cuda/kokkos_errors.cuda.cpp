// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "kokkos_errors.hpp"

#include <fourfold/base/fatal_exit.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <tuple>
#include <utility>

namespace fourfold::kernels {
namespace {

thread_local const char* call_under_way = nullptr;

/// Kokkos has said what it has to say, and aborts: on its own thread, in none of the C library's
/// functions. Another abort goes its way.
extern "C" void tell_abort(int /*signal*/) {
  const char* const call = std::exchange(call_under_way, nullptr);
  if (call == nullptr) {
    return;
  }
  constexpr ExitCode code = ExitCode::node_fault;
  tell_fatal_exit(code, fmt::format("{}: Kokkos ended the process in {} (its words stand above); "
                                    "leave this node out; its kernel log (dmesg, Xid) says more",
                                    device::described_device(), call));
  ::_exit(static_cast<int>(code));
}

}  // namespace

KokkosCall::KokkosCall(const char* call) noexcept {
  call_under_way = call;
}

KokkosCall::~KokkosCall() {
  call_under_way = nullptr;
}

void watch_kokkos_aborts() {
  std::signal(SIGABRT, tell_abort);
}

void tell_kokkos_failure(const char* call, const std::exception& failure, bool of_memory) {
  device::check_cuda(cudaGetLastError(), call);
  device::check_device();
  if (of_memory) {
    // Kokkos has made the same of any error, and cleared it: whether memory can be had tells them
    // apart.
    void* byte = nullptr;
    device::check_cuda(cudaMalloc(&byte, 1), call);
    std::ignore = cudaFree(byte);
    device::check_cuda(cudaErrorMemoryAllocation, call);
  }
  throw SystemError(ExitCode::internal, fmt::format("{}: {} failed: {}", device::described_device(),
                                                    call, failure.what()));
}

}  // namespace fourfold::kernels
