// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/shape.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fourfold {

/// A rectangular part of a logical tensor: offset[d] .. offset[d] + extent[d] in every dim d.
/// Whatever shards a tensor (tensor parallelism, pipeline ownership, ZeRO, checkpoint extents,
/// export) is a set of boxes of the same logical tensor; this type and intersect() serve them all.
struct Box {
  Shape offset;
  Shape extent;

  /// The box that is the whole tensor.
  static Box whole(const Shape& shape) { return {Shape::filled(shape.rank(), 0), shape}; }

  std::size_t rank() const noexcept { return extent.rank(); }
  std::int64_t elements() const noexcept { return extent.elements(); }
  bool empty() const noexcept { return elements() == 0; }
  std::string str() const;
  friend bool operator==(const Box&, const Box&) = default;
};

/// The common part of two boxes of one tensor, or nothing when they share no element.
/// @pre a.rank() == b.rank()
std::optional<Box> intersect(const Box& a, const Box& b);

/// Whether every element of `inner` lies in `outer`. Empty boxes lie in every box.
bool contains(const Box& outer, const Box& inner);

/// Elements [begin, begin + count) of part `index` when `total` is cut into `parts` as evenly as
/// possible: the first total % parts parts have one more. Parts may be empty when parts > total.
struct Range {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t end() const noexcept { return begin + count; }
  friend bool operator==(const Range&, const Range&) = default;
};
/// What both have; empty (at some place) when that is nothing.
Range intersection(Range a, Range b) noexcept;
Range even_part(std::int64_t total, std::int64_t parts, std::int64_t index);

/// Row-major linear index of `position` (absolute coordinates) in a tensor of `shape`.
std::int64_t linear_index(const Shape& shape, const Shape& position);

/// One maximal run of `part` that is contiguous in both containers: element offsets and a count.
struct Run {
  std::int64_t source_element = 0;  ///< offset within the dense row-major storage of `source`
  std::int64_t target_element = 0;  ///< offset within the dense row-major storage of `target`
  std::int64_t elements = 0;
};

/// Calls `visit` for each contiguous run of `part`, in row-major order, when `source` and `target`
/// are boxes of one tensor that are each stored densely. This is the whole of copying between two
/// shardings.
/// @pre contains(source, part) and contains(target, part)
void for_each_run(const Box& source, const Box& target, const Box& part,
                  const std::function<void(const Run&)>& visit);

/// Covers the flat row-major element range [begin, begin + count) of a tensor by at most 2 * rank -
/// 1 disjoint boxes, in order.
std::vector<Box> boxes_of_flat_range(const Shape& shape, Range range);

}  // namespace fourfold
