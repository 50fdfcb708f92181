// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "load/shared_reads.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::io {
namespace {

/// Sent at a time, so that who is done with memory can let go of it.
constexpr std::int64_t message_bytes = std::int64_t{64} << 20;

bool shares(const ReadSharing& sharing, const HeldBox& held) {
  return sharing.from_holders > 0 && held.holders.size() >= std::max(2, sharing.from_holders);
}

/// Calls visit(layout, held box) for each that ranks share, in the order in which all of them go
/// through them. Files hold tensors in that order too, so that who reads a run of it reads runs of
/// files.
template <class Visit>
void for_each_shared(const Checkpoint& checkpoint, const ReadSharing& sharing, const Visit& visit) {
  for (const TensorLayout& layout : sharing.layouts) {
    for (const HeldBox& held : layout.boxes) {
      if (shares(sharing, held) && !held.box.empty() && checkpoint.find(layout.id) != nullptr) {
        visit(layout, held);
      }
    }
  }
}

std::int64_t bytes_of(const TensorLayout& layout, const HeldBox& held) {
  return held.box.elements() * size_in_bytes(layout.dtype);
}

/// Where part `index` of `total` cut into `parts` begins.
std::int64_t part_begin(std::int64_t total, std::int64_t parts, std::int64_t index) {
  return total / parts * index + total % parts * index / parts;
}

/// The first dim of more than one element: a range of it is one run of the box's memory.
std::size_t dim_to_cut(const Box& box) {
  std::size_t dim = 0;
  while (dim + 1 < box.rank() && box.extent[dim] == 1) {
    ++dim;
  }
  return dim;
}

/// Sets none of which has a rank of another in the same round: ranks split once for all of them.
std::vector<std::vector<std::size_t>> rounds_of(std::span<const RankSet> sets, int ranks) {
  std::vector<std::vector<std::size_t>> rounds;
  std::vector<std::vector<bool>> taken;
  for (std::size_t set = 0; set < sets.size(); ++set) {
    const std::vector<int> members = sets[set].members();
    const auto is_free = [&](const std::vector<bool>& round) {
      return std::ranges::none_of(members, [&](int rank) -> bool { return round[rank]; });
    };
    auto place = std::ranges::find_if(taken, is_free);
    if (place == taken.end()) {
      rounds.emplace_back();
      place = taken.insert(taken.end(), std::vector<bool>(ranks));
    }
    rounds[place - taken.begin()].push_back(set);
    for (const int rank : members) {
      (*place)[rank] = true;
    }
  }
  return rounds;
}

}  // namespace

std::size_t SharedReads::group_of(const RankSet& ranks) {
  const auto [found, is_new] = group_of_set_.emplace(ranks, groups_.size());
  if (is_new) {
    groups_.push_back(ranks);
  }
  return found->second;
}

SharedReads::SharedReads(const Checkpoint& checkpoint, std::span<const WantedBox> wanted,
                         const ReadSharing& sharing, const comm::Communicator& communicator) {
  std::vector<std::int64_t> bytes_of_group;
  for_each_shared(checkpoint, sharing, [&](const TensorLayout& layout, const HeldBox& held) {
    const std::size_t group = group_of(held.holders);
    bytes_of_group.resize(groups_.size());
    bytes_of_group[group] += bytes_of(layout, held);
  });
  std::map<TensorId, std::vector<const WantedBox*>> wanted_of;
  for (const WantedBox& box : wanted) {
    wanted_of[box.id].push_back(&box);
  }
  std::vector<std::int64_t> bytes_before(groups_.size());
  for_each_shared(checkpoint, sharing, [&](const TensorLayout& layout, const HeldBox& held) {
    const std::size_t group = group_of(held.holders);
    const std::int64_t begin =
        std::exchange(bytes_before[group], bytes_before[group] + bytes_of(layout, held));
    if (!held.holders.contains(communicator.rank())) {
      return;
    }
    const auto& boxes = wanted_of[layout.id];
    const auto mine =
        std::ranges::find_if(boxes, [&](const WantedBox* box) { return box->box == held.box; });
    if (mine == boxes.end()) {
      throw SystemError(ExitCode::internal,
                        format_message("checkpoint: box {} of tensor {}, which this rank holds, is "
                                       "not among those it wants to load",
                                       held.box.str(), layout.id.str()));
    }
    shared_.insert(*mine);
    add_parts(**mine, group, begin, bytes_of_group[group], sharing.smallest_part_bytes);
  });
}

void SharedReads::add_parts(const WantedBox& wanted, std::size_t group, std::int64_t begin_byte,
                            std::int64_t group_bytes, std::int64_t smallest_part_bytes) {
  const Box& box = wanted.box;
  const std::size_t dim = dim_to_cut(box);
  const std::int64_t rows = box.rank() == 0 ? 1 : box.extent[dim];
  const std::int64_t row_bytes = box.elements() * size_in_bytes(wanted.data.dtype()) / rows;
  const RankSet& ranks = groups_[group];
  const auto readers = static_cast<int>(
      std::clamp<std::int64_t>(group_bytes / smallest_part_bytes, 1, ranks.size()));
  // A row belongs to the reader whose share of the group's bytes its first byte lies in.
  const auto first_row = [&](int reader) {
    const std::int64_t bytes = part_begin(group_bytes, readers, reader) - begin_byte;
    return std::clamp((bytes + row_bytes - 1) / row_bytes, std::int64_t{0}, rows);
  };
  for (int reader = 0; reader < readers; ++reader) {
    const std::int64_t begin = first_row(reader);
    const std::int64_t end = reader + 1 == readers ? rows : first_row(reader + 1);
    if (begin == end) {
      continue;
    }
    Part part{.wanted = &wanted, .box = box, .reader = ranks[reader], .group = group};
    if (box.rank() > 0) {
      part.box.offset[dim] += begin;
      part.box.extent[dim] = end - begin;
    }
    part.byte_offset = begin * row_bytes;
    part.bytes = (end - begin) * row_bytes;
    parts_.push_back(std::move(part));
  }
}

std::map<std::size_t, std::unique_ptr<comm::Communicator>> SharedReads::make_groups(
    comm::Communicator& communicator) const {
  std::map<std::size_t, std::unique_ptr<comm::Communicator>> mine;
  for (const std::vector<std::size_t>& round : rounds_of(groups_, communicator.size())) {
    const auto own = std::ranges::find_if(
        round, [&](std::size_t set) { return groups_[set].contains(communicator.rank()); });
    const std::vector<int> members =
        own == round.end() ? std::vector<int>{communicator.rank()} : groups_[*own].members();
    auto group = communicator.subgroup(members, "readers");
    if (own != round.end()) {
      mine.emplace(*own, std::move(group));
    }
  }
  return mine;
}

void SharedReads::exchange(comm::Communicator& communicator, const DoneWith& done_with) const {
  const auto groups = make_groups(communicator);
  for (const Part& part : parts_) {
    const std::vector<int> members = groups_[part.group].members();
    const auto root = static_cast<int>(std::ranges::find(members, part.reader) - members.begin());
    std::byte* const data = static_cast<std::byte*>(part.wanted->data.data()) + part.byte_offset;
    for (std::int64_t begin = 0; begin < part.bytes; begin += message_bytes) {
      const std::int64_t count = std::min(message_bytes, part.bytes - begin);
      groups.at(part.group)
          ->broadcast(TensorView(data + begin, DType::u8, {count}), root, {})
          .wait({});
      if (done_with) {
        done_with(data + begin, count);
      }
    }
  }
}

}  // namespace fourfold::io
