// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/parallel/shard_layout.hpp>

#include <algorithm>
#include <numeric>

namespace fourfold::parallel {
ShardLayout::ShardLayout(std::span<const model::ParameterSpec> table, std::span<const Box> boxes,
                         const model::FlatLayout& layout, int ranks)
    : ranks_(ranks) {
  FOURFOLD_EXPECT(ranks >= 1 && table.size() == boxes.size());
  FOURFOLD_EXPECT(layout.ranges.size() == table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (layout.ranges[i].count > 0) {
      placed_.push_back({i, boxes[i], layout.ranges[i]});
    }
  }
  std::ranges::sort(placed_, {}, [](const ShardPiece& placed) { return placed.flat.begin; });
  for (const model::Segment& segment : layout.segments) {
    cuts_.push_back(cut(segment.flat));
  }
}

std::vector<std::int64_t> ShardLayout::cut(Range segment) const {
  std::vector<std::int64_t> cuts{segment.begin};
  for (int rank = 1; rank < ranks_; ++rank) {
    const std::int64_t even = even_part(segment.count, ranks_, rank).begin + segment.begin;
    const auto after = std::ranges::upper_bound(
        placed_, even, {}, [](const ShardPiece& placed) { return placed.flat.begin; });
    std::int64_t border = segment.begin;
    if (after != placed_.begin()) {
      const ShardPiece& hit = *std::prev(after);
      const std::int64_t row = hit.flat.count / hit.box.extent[0];
      const std::int64_t rows =
          std::min(hit.box.extent[0], (even - hit.flat.begin + row / 2) / row);
      border = hit.flat.begin + rows * row;
    }
    cuts.push_back(std::clamp(border, cuts.back(), segment.end()));
  }
  cuts.push_back(segment.end());
  return cuts;
}

Range ShardLayout::share(std::size_t segment, int rank) const {
  FOURFOLD_EXPECT(0 <= rank && rank < ranks_);
  const std::size_t at = rank;
  return {cuts_[segment][at], cuts_[segment][at + 1] - cuts_[segment][at]};
}

std::vector<std::int64_t> ShardLayout::counts(std::size_t segment, Range part) const {
  std::vector<std::int64_t> counts;
  for (int rank = 0; rank < ranks_; ++rank) {
    counts.push_back(intersection(share(segment, rank), part).count);
  }
  FOURFOLD_ENSURE(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == part.count);
  return counts;
}

std::vector<ShardPiece> ShardLayout::pieces(int rank) const {
  std::vector<ShardPiece> pieces;
  for (std::size_t segment = 0; segment < cuts_.size(); ++segment) {
    const Range mine = share(segment, rank);
    for (const ShardPiece& placed : placed_) {
      const Range flat = intersection(placed.flat, mine);
      if (flat.count > 0) {
        const std::int64_t row = placed.flat.count / placed.box.extent[0];
        Box box = placed.box;
        box.offset[0] += (flat.begin - placed.flat.begin) / row;
        box.extent[0] = flat.count / row;
        FOURFOLD_ASSERT(box.elements() == flat.count);
        pieces.push_back({placed.parameter, box, flat});
      }
    }
  }
  return pieces;
}

}  // namespace fourfold::parallel
