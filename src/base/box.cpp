// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/box.hpp>
#include <fourfold/base/contract.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fourfold {

std::string Shape::str() const {
  return fmt::format("[{}]", fmt::join(begin(), end(), ", "));
}

std::string Box::str() const {
  return fmt::format("{}+{}", offset.str(), extent.str());
}

std::optional<Box> intersect(const Box& a, const Box& b) {
  FOURFOLD_EXPECT(a.rank() == b.rank());
  Box common = a;
  for (std::size_t dim = 0; dim < a.rank(); ++dim) {
    const std::int64_t begin = std::max(a.offset[dim], b.offset[dim]);
    const std::int64_t end = std::min(a.offset[dim] + a.extent[dim], b.offset[dim] + b.extent[dim]);
    if (end <= begin) {
      return std::nullopt;
    }
    common.offset[dim] = begin;
    common.extent[dim] = end - begin;
  }
  return common;
}

bool contains(const Box& outer, const Box& inner) {
  FOURFOLD_EXPECT(outer.rank() == inner.rank());
  if (inner.empty()) {
    return true;
  }
  for (std::size_t dim = 0; dim < outer.rank(); ++dim) {
    if (inner.offset[dim] < outer.offset[dim] ||
        inner.offset[dim] + inner.extent[dim] > outer.offset[dim] + outer.extent[dim]) {
      return false;
    }
  }
  return true;
}

Range intersection(Range a, Range b) noexcept {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max<std::int64_t>(0, std::min(a.end(), b.end()) - begin)};
}

Range even_part(std::int64_t total, std::int64_t parts, std::int64_t index) {
  FOURFOLD_EXPECT(total >= 0 && parts > 0 && index >= 0 && index < parts);
  const std::int64_t base = total / parts;
  const std::int64_t longer = total % parts;
  return {index * base + std::min(index, longer), base + (index < longer ? 1 : 0)};
}

std::int64_t linear_index(const Shape& shape, const Shape& position) {
  FOURFOLD_EXPECT(shape.rank() == position.rank());
  std::int64_t index = 0;
  for (std::size_t dim = 0; dim < shape.rank(); ++dim) {
    index = index * shape[dim] + position[dim];
  }
  return index;
}

namespace {

/// Position of absolute coordinates `position` within the dense storage of `box`.
std::int64_t element_in_box(const Box& box, const Shape& position) {
  std::int64_t index = 0;
  for (std::size_t dim = 0; dim < box.rank(); ++dim) {
    index = index * box.extent[dim] + (position[dim] - box.offset[dim]);
  }
  return index;
}

/// First dim of the suffix over which `part` spans source and target fully (those dims merge into
/// one run).
std::size_t first_merged_dim(const Box& source, const Box& target, const Box& part) {
  std::size_t first = part.rank();
  while (first > 0) {
    const std::size_t dim = first - 1;
    first = dim;
    if (part.extent[dim] != source.extent[dim] || part.extent[dim] != target.extent[dim]) {
      break;
    }
  }
  return first;
}

}  // namespace

void for_each_run(const Box& source, const Box& target, const Box& part,
                  const std::function<void(const Run&)>& visit) {
  FOURFOLD_EXPECT(contains(source, part) && contains(target, part));
  if (part.empty()) {
    return;
  }
  const std::size_t merged = first_merged_dim(source, target, part);
  std::int64_t run_elements = 1;
  for (std::size_t dim = merged; dim < part.rank(); ++dim) {
    run_elements *= part.extent[dim];
  }
  Shape position = part.offset;
  while (true) {
    visit({element_in_box(source, position), element_in_box(target, position), run_elements});
    std::size_t dim = merged;
    while (dim > 0) {  // odometer over the outer dims
      --dim;
      if (++position[dim] < part.offset[dim] + part.extent[dim]) {
        break;
      }
      position[dim] = part.offset[dim];
      if (dim == 0) {
        return;
      }
    }
    if (merged == 0) {
      return;
    }
  }
}

namespace {

/// Appends boxes for [begin, end) within the sub-tensor whose leading coordinates are fixed by
/// `prefix`.
void append_flat_boxes(const Shape& shape, Shape prefix, std::size_t dim, std::int64_t begin,
                       std::int64_t end, std::vector<Box>& boxes) {
  if (begin >= end) {
    return;
  }
  if (dim == shape.rank()) {  // a scalar
    boxes.push_back({prefix, Shape::filled(shape.rank(), 1)});
    return;
  }
  std::int64_t row = 1;
  for (std::size_t inner = dim + 1; inner < shape.rank(); ++inner) {
    row *= shape[inner];
  }
  const std::int64_t first_whole = (begin + row - 1) / row;
  const std::int64_t last_whole = end / row;
  if (first_whole > last_whole) {  // inside one row
    prefix[dim] = begin / row;
    append_flat_boxes(shape, prefix, dim + 1, begin % row, begin % row + (end - begin), boxes);
    return;
  }
  if (begin < first_whole * row) {
    prefix[dim] = begin / row;
    append_flat_boxes(shape, prefix, dim + 1, begin % row, row, boxes);
  }
  if (last_whole > first_whole) {
    Box whole{prefix, shape};
    for (std::size_t outer = 0; outer < dim; ++outer) {
      whole.extent[outer] = 1;
    }
    whole.offset[dim] = first_whole;
    whole.extent[dim] = last_whole - first_whole;
    boxes.push_back(whole);
  }
  if (end > last_whole * row) {
    prefix[dim] = last_whole;
    append_flat_boxes(shape, prefix, dim + 1, 0, end - last_whole * row, boxes);
  }
}

}  // namespace

std::vector<Box> boxes_of_flat_range(const Shape& shape, Range range) {
  FOURFOLD_EXPECT(range.begin >= 0 && range.count >= 0 && range.end() <= shape.elements());
  std::vector<Box> boxes;
  append_flat_boxes(shape, Shape::filled(shape.rank(), 0), 0, range.begin, range.end(), boxes);
  return boxes;
}

}  // namespace fourfold
