// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/parallel/pipeline.hpp>
#include <fourfold/train/resolved_run.hpp>

#include <cstdint>
#include <string_view>

namespace fourfold::train {

/// train.cuda_graphs = "auto": micro-batches of a rank with more tokens take so long that their
/// launches do not count.
inline constexpr std::int64_t most_tokens_for_graphs = 4096;

struct GraphUse {
  parallel::GraphsOf graphs = parallel::GraphsOf::none;
  /// Why none, where train.cuda_graphs = true asks for them; else empty.
  std::string_view why_not = {};
};

/// What train.cuda_graphs comes to. The same on all ranks.
/// @param has_devices  device::has_own_memory
GraphUse graph_use(const ResolvedRun& run, bool has_devices);

}  // namespace fourfold::train
