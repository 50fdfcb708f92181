// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"

#include <cstdint>
#include <optional>

namespace fourfold::bench {

/// @param ranks_on_host  of this machine: they share its memory
/// @throws UserError (config) when the buffers of the largest size do not fit, naming one that does
void require_memory(const Request& request, int line_ranks, int ranks_on_host,
                    std::optional<std::int64_t> available_bytes);

}  // namespace fourfold::bench
