// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "check.nccl.hpp"

#include "cuda_check.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <fmt/format.h>

#include <string>

namespace fourfold::comm {
namespace {

static_assert(NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3),
              "communicators have names since NCCL 2.27.3: set NCCL_ROOT to one");

/// Several unique ids; one that is older than the headers takes no names.
constexpr int oldest_version = NCCL_VERSION(2, 23, 4);

/// What NCCL wrote last; "" for nothing.
std::string detail_of(ncclComm_t comm) {
  const char* const detail = ncclGetLastError(comm);
  return detail == nullptr ? "" : detail;
}

/// NCCL has a code for all failures of CUDA together.
bool is_out_of_memory(ncclResult_t result, const std::string& detail) {
  return result == ncclUnhandledCudaError && detail.find("out of memory") != detail.npos;
}

ExitCode code_of(ncclResult_t result, const std::string& detail) {
  if (is_out_of_memory(result, detail)) {
    return ExitCode::config;
  }
  return result == ncclRemoteError || result == ncclSystemError || result == ncclUnhandledCudaError
             ? ExitCode::node_fault
             : ExitCode::internal;
}

}  // namespace

std::string nccl_failure(ncclResult_t result, const std::string& what, ncclComm_t comm) {
  const std::string detail = detail_of(comm);
  const std::string known =
      fmt::format("NCCL: {} failed ({}{}{})", what, ncclGetErrorString(result),
                  detail.empty() ? "" : "; ", detail);
  switch (code_of(result, detail)) {
    case ExitCode::config:
      return fmt::format("{} {}", known, device::out_of_memory_advice());
    case ExitCode::node_fault:
      return known + "; NCCL_DEBUG=INFO says which connection or device it was";
    default:
      return known + "; this is a bug: run again with NCCL_DEBUG=INFO and report it";
  }
}

void check_nccl(ncclResult_t result, const std::string& what, ncclComm_t comm) {
  if (result != ncclSuccess && result != ncclInProgress) {
    throw SystemError(code_of(result, detail_of(comm)), nccl_failure(result, what, comm));
  }
}

std::string nccl_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

void require_nccl_version() {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "ncclGetVersion");
  if (version < oldest_version || version / 10000 != NCCL_MAJOR) {
    throw UserError(ExitCode::config,
                    format_message("the NCCL that was loaded is {} (this program was built with {} "
                                   "and needs {} or a later {}.x); let LD_LIBRARY_PATH or the "
                                   "environment's modules name another libnccl.so.2",
                                   nccl_version_text(version), nccl_version_text(NCCL_VERSION_CODE),
                                   nccl_version_text(oldest_version), NCCL_MAJOR));
  }
}

}  // namespace fourfold::comm
