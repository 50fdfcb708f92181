// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/io/checkpoint_plan.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace fourfold::io {
namespace {

/// No sums or products before a box is known to lie in its tensor: it may come from a hostile file.
bool lies_in(const Shape& shape, const Box& box) {
  if (box.rank() != shape.rank() || box.offset.rank() != shape.rank()) {
    return false;
  }
  for (std::size_t dim = 0; dim < shape.rank(); ++dim) {
    if (box.extent[dim] < 0 || box.extent[dim] > shape[dim] || box.offset[dim] < 0 ||
        box.offset[dim] > shape[dim] - box.extent[dim]) {
      return false;
    }
  }
  return true;
}

/// The dim in which the boxes start at most places.
std::size_t most_cut_dim(std::size_t rank, std::span<const Box* const> boxes) {
  std::size_t best = 0;
  std::size_t most_starts = 0;
  for (std::size_t dim = 0; dim < rank; ++dim) {
    std::set<std::int64_t> starts;
    for (const Box* box : boxes) {
      starts.insert(box->offset[dim]);
    }
    if (starts.size() > most_starts) {
      most_starts = starts.size();
      best = dim;
    }
  }
  return best;
}

/// Sweeps along the most cut dim, so that only boxes that overlap in it are compared.
std::optional<std::string> overlap(std::size_t rank, std::vector<const Box*> boxes) {
  const std::size_t sweep = most_cut_dim(rank, boxes);
  if (rank > 0) {
    std::stable_sort(boxes.begin(), boxes.end(), [&](const Box* a, const Box* b) {
      return a->offset[sweep] < b->offset[sweep];
    });
  }
  std::vector<const Box*> open;
  for (const Box* box : boxes) {
    if (rank > 0) {
      std::erase_if(open, [&](const Box* other) {
        return other->offset[sweep] + other->extent[sweep] <= box->offset[sweep];
      });
    }
    for (const Box* other : open) {
      if (intersect(*box, *other)) {
        return fmt::format("has boxes {} and {} that overlap", other->str(), box->str());
      }
    }
    open.push_back(box);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> cover_defect(const Shape& shape, std::span<const Box> boxes) {
  std::vector<const Box*> filled;
  for (const Box& box : boxes) {
    if (!lies_in(shape, box)) {
      return fmt::format("has box {} outside its shape {}", box.str(), shape.str());
    }
    if (!box.empty()) {
      filled.push_back(&box);
    }
  }
  if (auto defect = overlap(shape.rank(), filled)) {
    return defect;
  }
  std::int64_t covered = 0;
  for (const Box* box : filled) {
    covered += box->elements();
  }
  if (covered != shape.elements()) {
    return fmt::format("has boxes that cover {} of its {} elements", covered, shape.elements());
  }
  return std::nullopt;
}

}  // namespace fourfold::io
