// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "format/checkpoint_contents.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/checkpoint_plan.hpp>
#include <fourfold/io/fingerprint.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

namespace fourfold::io {
namespace {

[[noreturn]] void bad_layout(const TensorLayout& layout, const std::string& why) {
  throw UserError(ExitCode::internal,
                  format_message("checkpoint plan: tensor {} {}", layout.id.str(), why));
}

void check_layout(const TensorLayout& layout, int ranks, std::set<TensorId>& seen) {
  if (!is_tensor_name(layout.id.name)) {
    bad_layout(layout, "has a name with other characters than letters, digits, '.', '_', '-'");
  }
  if (!seen.insert(layout.id).second) {
    bad_layout(layout, "is there twice");
  }
  std::vector<Box> boxes;
  for (const HeldBox& held : layout.boxes) {
    boxes.push_back(held.box);
    if (held.holders[0] < 0 || held.holders[held.holders.size() - 1] >= ranks) {
      bad_layout(layout, format_message("box {} is held by ranks outside 0..{}", held.box.str(),
                                        ranks - 1));
    }
  }
  if (const auto defect = cover_defect(layout.shape, boxes)) {
    bad_layout(layout, *defect);
  }
}

/// The parts of a held box, in order: cuts along the slowest dim longer than one stay contiguous.
std::vector<Box> parts_of(const Box& box, std::int64_t element_bytes, int holders,
                          const PlanOptions& options) {
  std::size_t dim = 0;
  while (dim < box.rank() && box.extent[dim] <= 1) {
    ++dim;
  }
  const std::int64_t bytes = box.elements() * element_bytes;
  const std::int64_t wanted = std::min<std::int64_t>(
      holders, bytes / std::max<std::int64_t>(options.smallest_part_bytes, 1));
  if (dim == box.rank() || wanted < 2) {
    return {box};
  }
  const std::int64_t parts = std::min(wanted, box.extent[dim]);
  std::vector<Box> result(parts, box);
  for (std::int64_t index = 0; index < parts; ++index) {
    const Range range = even_part(box.extent[dim], parts, index);
    result[index].offset[dim] = box.offset[dim] + range.begin;
    result[index].extent[dim] = range.count;
  }
  return result;
}

void add_box(Fingerprint& fingerprint, const Box& box) {
  for (std::size_t dim = 0; dim < box.rank(); ++dim) {
    fingerprint.add(box.offset[dim]);
    fingerprint.add(box.extent[dim]);
  }
}

void add_tensor(Fingerprint& fingerprint, const TensorLayout& layout) {
  fingerprint.add(layout.id.str());
  fingerprint.add(name(layout.dtype));
  fingerprint.add(layout.shape.rank());
  add_box(fingerprint, Box::whole(layout.shape));
}

}  // namespace

bool is_tensor_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

std::string TensorId::str() const {
  return fmt::format("{}/{}", name, state.name());
}

RankSet::RankSet(int first, std::span<const Axis> axes) : first_(first) {
  FOURFOLD_EXPECT(axes.size() <= axes_.size());
  std::ranges::copy_backward(axes, axes_.end());
  [[maybe_unused]] int span = 0;
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    FOURFOLD_EXPECT(axis->count >= 1);
    FOURFOLD_EXPECT(axis->count == 1 || axis->stride > span);
    span += (axis->count - 1) * axis->stride;
  }
}

RankSet RankSet::all(int ranks) {
  const Axis axis{ranks, 1};
  return RankSet(0, {&axis, 1});
}

int RankSet::size() const noexcept {
  return std::accumulate(axes_.begin(), axes_.end(), 1,
                         [](int product, const Axis& axis) { return product * axis.count; });
}

int RankSet::operator[](int index) const {
  FOURFOLD_EXPECT(index >= 0 && index < size());
  int rank = first_;
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    rank += (index % axis->count) * axis->stride;
    index /= axis->count;
  }
  return rank;
}

std::vector<int> RankSet::members() const {
  std::vector<int> ranks;
  for (int index = 0; index < size(); ++index) {
    ranks.push_back((*this)[index]);
  }
  return ranks;
}

bool RankSet::contains(int rank) const noexcept {
  int rest = rank - first_;
  for (const Axis& axis : axes_) {  // strides exceed the span below them: the largest fit is right
    if (axis.count > 1) {
      rest -= std::clamp(rest / axis.stride, 0, axis.count - 1) * axis.stride;
    }
  }
  return rest == 0;
}

TensorLayout TensorLayout::replicated(TensorId id, DType dtype, Shape shape, int ranks) {
  return {std::move(id), dtype, shape, {{Box::whole(shape), RankSet::all(ranks)}}};
}

std::vector<int> shared_files(int ranks, int files) {
  FOURFOLD_EXPECT(ranks >= 1 && files >= 1);
  std::vector<int> file_of_rank;
  for (int file = 0; file < std::min(files, ranks); ++file) {
    const Range range = even_part(ranks, std::min(files, ranks), file);
    file_of_rank.insert(file_of_rank.end(), range.count, file);
  }
  return file_of_rank;
}

std::vector<int> files_by_node(std::span<const std::string> rank_hosts) {
  std::map<std::string_view, int> files;
  std::vector<int> file_of_rank;
  for (const std::string& host : rank_hosts) {
    file_of_rank.push_back(files.emplace(host, static_cast<int>(files.size())).first->second);
  }
  return file_of_rank;
}

/// Every distinct set has a heap of its own, of the bytes that its ranks had once. Loads only grow,
/// so an entry that is out of date is too small, never too large: it comes to the top too early and
/// is put right there. A set costs its size once, and each hand-out a logarithm for every set of
/// the rank that is looked at again; scanning the set each time would be 16,384^2 looks for a
/// tensor that 16,384 ranks hold.
std::vector<int> share_out(std::span<const std::int64_t> bytes,
                           const std::function<const RankSet&(std::size_t item)>& holders_of,
                           std::span<std::int64_t> bytes_of_rank) {
  using Entry = std::pair<std::int64_t, int>;
  using Heap = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;
  std::map<RankSet, Heap> heaps;
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>{}, [&](std::size_t item) { return bytes[item]; });
  std::vector<int> rank_of(bytes.size());
  for (const std::size_t item : order) {
    const RankSet& holders = holders_of(item);
    const auto [place, is_new] = heaps.try_emplace(holders);
    Heap& heap = place->second;
    if (is_new) {
      std::vector<Entry> entries;
      for (const int rank : holders.members()) {
        entries.emplace_back(bytes_of_rank[rank], rank);
      }
      heap = Heap({}, std::move(entries));
    }
    while (heap.top().first != bytes_of_rank[heap.top().second]) {
      const int rank = heap.top().second;
      heap.pop();
      heap.emplace(bytes_of_rank[rank], rank);
    }
    const int rank = heap.top().second;
    heap.pop();
    heap.emplace(bytes_of_rank[rank] += bytes[item], rank);
    rank_of[item] = rank;
  }
  return rank_of;
}

SavePlan plan_save(std::span<const TensorLayout> layouts, int ranks, const PlanOptions& options) {
  FOURFOLD_EXPECT(ranks >= 1);
  SavePlan plan;
  plan.bytes_of_rank.assign(ranks, 0);
  std::vector<std::int64_t> bytes;
  std::set<TensorId> seen;
  for (std::size_t tensor = 0; tensor < layouts.size(); ++tensor) {
    const TensorLayout& layout = layouts[tensor];
    check_layout(layout, ranks, seen);
    const std::int64_t element_bytes = size_in_bytes(layout.dtype);
    for (std::size_t held = 0; held < layout.boxes.size(); ++held) {
      const HeldBox& held_box = layout.boxes[held];
      if (held_box.box.empty()) {
        continue;
      }
      for (const Box& part :
           parts_of(held_box.box, element_bytes, held_box.holders.size(), options)) {
        plan.extents.push_back({tensor, held, part, -1});
        bytes.push_back(part.elements() * element_bytes);
      }
    }
  }
  const std::vector<int> writers = share_out(
      bytes,
      [&](std::size_t index) -> const RankSet& {
        const PlannedExtent& extent = plan.extents[index];
        return layouts[extent.tensor].boxes[extent.held_box].holders;
      },
      plan.bytes_of_rank);
  for (std::size_t index = 0; index < writers.size(); ++index) {
    plan.extents[index].writer = writers[index];
  }
  return plan;
}

std::string plan_fingerprint(std::span<const TensorLayout> layouts, int ranks,
                             const PlanOptions& options) {
  Fingerprint fingerprint;
  fingerprint.add(ranks);
  fingerprint.add(options.smallest_part_bytes);
  fingerprint.add(std::as_bytes(std::span(options.file_of_rank)));
  for (const TensorLayout& layout : layouts) {
    add_tensor(fingerprint, layout);
    for (const HeldBox& held : layout.boxes) {
      add_box(fingerprint, held.box);
      fingerprint.add(held.holders.size());
      for (const RankSet::Axis& axis : held.holders.axes()) {
        fingerprint.add(axis.count);
        fingerprint.add(axis.stride);
      }
      fingerprint.add(held.holders[0]);
    }
  }
  return fingerprint.str();
}

std::string model_fingerprint(std::span<const TensorLayout> layouts) {
  std::vector<const TensorLayout*> sorted;
  for (const TensorLayout& layout : layouts) {
    sorted.push_back(&layout);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const TensorLayout* a, const TensorLayout* b) { return a->id < b->id; });
  Fingerprint fingerprint;
  for (const TensorLayout* layout : sorted) {
    add_tensor(fingerprint, *layout);
  }
  return fingerprint.str();
}

}  // namespace fourfold::io
