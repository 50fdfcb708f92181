// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"

#include <fourfold/comm/communicator.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace fourfold::bench {

/// What one rank does: measures all that was asked for, and on rank 0 prints it and writes the
/// files. Collective over `world`.
/// @param transport  "mpi", "threads"
/// @return differs, on all ranks, when a result was wrong
ExitCode measure_rank(const Arguments& arguments, const Request& request,
                      const std::string& transport, comm::Communicator& world);

/// @param ranks_on_host  of this machine: they share its memory
/// @throws UserError (config) when the buffers of the largest size do not fit, naming one that does
void require_memory(const Request& request, std::int64_t line_ranks, std::int64_t ranks_on_host,
                    std::optional<std::int64_t> available_bytes);

}  // namespace fourfold::bench
