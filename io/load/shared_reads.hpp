// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/checkpoint_load.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

namespace fourfold::io {

/// How ranks that want the same boxes share the reading of them: of all bytes that the same set of
/// ranks wants, in the order of the layouts, each (or as many as there are parts of some size)
/// reads an even run and hands it to the others.
/// The plan is a pure function of the layouts; no rank asks another what it wants.
class SharedReads {
 public:
  /// A part of a wanted box, which is one run of its memory.
  struct Part {
    const WantedBox* wanted = nullptr;
    Box box;
    int reader = 0;         ///< rank of the communicator
    std::size_t group = 0;  ///< whose ranks want it
    std::int64_t byte_offset = 0;
    std::int64_t bytes = 0;
  };

  /// Nothing is shared.
  SharedReads() = default;
  /// @param wanted  borrowed; boxes of tensors that the checkpoint has
  /// @throws SystemError (internal) when a rank does not want what the layouts say it holds
  SharedReads(const Checkpoint& checkpoint, std::span<const WantedBox> wanted,
              const ReadSharing& sharing, const comm::Communicator& communicator);

  /// Whether a box is read in parts.
  bool is_shared(const WantedBox& wanted) const { return shared_.contains(&wanted); }
  /// In the same order on all ranks that want them.
  std::span<const Part> parts() const noexcept { return parts_; }

  /// Each part from who has read it to the others. Collective.
  void exchange(comm::Communicator& communicator, const DoneWith& done_with) const;

 private:
  std::size_t group_of(const RankSet& ranks);
  /// @param begin_byte  of the box among all `group_bytes` bytes that the group shares
  void add_parts(const WantedBox& wanted, std::size_t group, std::int64_t begin_byte,
                 std::int64_t group_bytes, std::int64_t smallest_part_bytes);
  /// This rank's group of each set that it is in; by all ranks, round by round.
  std::map<std::size_t, std::unique_ptr<comm::Communicator>> make_groups(
      comm::Communicator& communicator) const;

  std::map<RankSet, std::size_t> group_of_set_;
  std::vector<RankSet> groups_;
  std::vector<Part> parts_;  ///< of boxes that this rank wants
  std::set<const WantedBox*> shared_;
};

}  // namespace fourfold::io
