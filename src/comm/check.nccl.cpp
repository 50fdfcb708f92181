// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "check.nccl.hpp"

#include <fourfold/base/error.hpp>

#include <fmt/format.h>

#include <cstring>

namespace fourfold::comm {
namespace {

/// ncclCommSplit with a configuration, several unique ids, named communicators.
constexpr int oldest_version = NCCL_VERSION(2, 23, 4);

bool is_fault_of_node(ncclResult_t result) {
  return result == ncclRemoteError || result == ncclSystemError || result == ncclUnhandledCudaError;
}

}  // namespace

std::string nccl_failure(ncclResult_t result, const std::string& what, ncclComm_t comm) {
  const char* const detail = ncclGetLastError(comm);
  const bool has_detail = detail != nullptr && std::strlen(detail) > 0;
  return fmt::format("NCCL: {} failed ({}{}{}) {}", what, ncclGetErrorString(result),
                     has_detail ? "; " : "", has_detail ? detail : "",
                     is_fault_of_node(result)
                         ? "NCCL_DEBUG=INFO says which connection or device it was"
                         : "this is a bug: run again with NCCL_DEBUG=INFO and report it");
}

void check_nccl(ncclResult_t result, const std::string& what, ncclComm_t comm) {
  if (result != ncclSuccess && result != ncclInProgress) {
    throw SystemError(is_fault_of_node(result) ? ExitCode::node_fault : ExitCode::internal,
                      nccl_failure(result, what, comm));
  }
}

std::string nccl_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

void require_nccl_version() {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "ncclGetVersion");
  if (version < oldest_version || version / 10000 != NCCL_MAJOR) {
    throw UserError(
        ExitCode::config,
        fmt::format(
            "the NCCL that was loaded is {} (this program was built with {} and needs {} "
            "or a later {}.x) let LD_LIBRARY_PATH or the environment's modules name another "
            "libnccl.so.2",
            nccl_version_text(version), nccl_version_text(NCCL_VERSION_CODE),
            nccl_version_text(oldest_version), NCCL_MAJOR));
  }
}

}  // namespace fourfold::comm
