// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <string>

namespace fourfold::comm {

/// Why a call of NCCL failed: "ncclAllReduce on communicator 'dp' failed (remote process exited or
/// there was a network error; ...)", and what to do.
/// @param what  the call and what it was for
/// @param comm  that it was on; nullptr: none
std::string nccl_failure(ncclResult_t result, const std::string& what, ncclComm_t comm);

/// @throws SystemError when `result` is neither success nor "in progress": node_fault for what a
///   restart on other nodes can mend, internal for what only we can have done wrong
void check_nccl(ncclResult_t result, const std::string& what, ncclComm_t comm = nullptr);

/// @throws UserError (config) unless the library that was loaded can do what this program was built
///   for: the same major version, and not older than what it needs
void require_nccl_version();

/// "2.28.9"
std::string nccl_version_text(int version);

}  // namespace fourfold::comm
