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

/// A box that several ranks hold.
struct Replica {
  const TensorLayout* layout = nullptr;
  const HeldBox* held = nullptr;
  const std::byte* mine = nullptr;         ///< this rank's copy; null: it is no holder
  std::array<std::uint64_t, 2> hash = {};  ///< of the copy (XXH3-128), once it is worked out
};

/// All of them. @param layouts  borrowed, like the memory of `data`, which hash_replicas() reads
std::vector<Replica> replicas_of(std::span<const TensorLayout> layouts, const HeldData& data);

/// Hashes this rank's copies. On any thread.
void hash_replicas(std::vector<Replica>& replicas, const DoneWith& done_with);

/// Compares the hashes of all ranks: one all_reduce of 32 bytes per box. Collective.
/// @throws SystemError (data_corrupt) on all ranks, naming tensors, boxes and the ranks that
///   differ from the majority, when replicas have diverged
void compare_replicas(const std::vector<Replica>& replicas, comm::Communicator& communicator);

}  // namespace fourfold::io
