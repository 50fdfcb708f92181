// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/checkpoint_plan.hpp>
#include <fourfold/io/save_request.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fourfold::io {

/// Whether all ranks pass the same words, by one all_reduce. Collective.
bool same_on_all_ranks(comm::Communicator& communicator, std::span<const std::uint64_t> words);

/// data[t][b]: this rank's copy of held box b of layout t, dense; null where it is no holder.
using HeldData = std::vector<std::vector<const std::byte*>>;

/// Hashes (XXH3-128) this rank's copy of every box that several ranks hold and compares it with
/// theirs: one all_reduce of 32 bytes per box. Collective.
/// @throws SystemError (data_corrupt) on all ranks, naming tensors, boxes and the ranks that differ
///   from the majority, when replicas have diverged
void compare_replicas(std::span<const TensorLayout> layouts, const HeldData& data,
                      comm::Communicator& communicator, const DoneWith& done_with);

}  // namespace fourfold::io
