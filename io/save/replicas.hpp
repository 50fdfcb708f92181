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

/// This rank's copies of all boxes that several ranks hold, beside theirs.
class ReplicaComparison {
 public:
  /// @param layouts  borrowed
  /// @param data     copied; its memory is read by hash() alone
  ReplicaComparison(std::span<const TensorLayout> layouts, const HeldData& data);

  /// Hashes this rank's copies (XXH3-128). On any thread.
  void hash(const DoneWith& done_with);
  /// Compares the hashes of all ranks: one all_reduce of 32 bytes per box. Collective.
  /// @throws SystemError (data_corrupt) on all ranks, naming tensors, boxes and the ranks that
  ///   differ from the majority, when replicas have diverged
  void compare(comm::Communicator& communicator) const;

 private:
  struct Replica {
    const TensorLayout* layout = nullptr;
    const HeldBox* held = nullptr;
    const std::byte* mine = nullptr;  ///< or not: another rank's
    std::array<std::uint64_t, 2> hash{};
  };
  static std::string difference(const Replica& replica, comm::Communicator& communicator);

  std::vector<Replica> replicas_;
};

}  // namespace fourfold::io
