// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"

#include <fourfold/comm/communicator.hpp>

#include <string>

namespace fourfold::bench {

/// What one rank does: measures all that was asked for, and on rank 0 prints it and writes the
/// files. Collective over `world`.
/// @param transport  "mpi", "threads"
/// @return differs, on all ranks, when a result was wrong
ExitCode measure_rank(const Arguments& arguments, const Request& request,
                      const std::string& transport, comm::Communicator& world);

}  // namespace fourfold::bench
