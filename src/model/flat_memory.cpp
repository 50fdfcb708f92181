// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/model/flat_memory.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

namespace fourfold::model {
namespace {

constexpr std::int64_t alignment_elements = 16;  // 64 bytes of f32: a cache line, a vector

std::int64_t aligned(std::int64_t element) {
  return (element + alignment_elements - 1) / alignment_elements * alignment_elements;
}

/// Appends parameters to a layout.
class Writer {
 public:
  Writer(std::span<const ParameterSpec> table, std::span<const Box> boxes)
      : table_(table), boxes_(boxes) {
    layout_.ranges.resize(table.size());
  }

  /// The vectors of a unit, or all else. The token embedding ends a segment.
  void add(std::size_t first, std::size_t last, bool vectors) {
    for (std::size_t i = first; i < last; ++i) {
      if (table_[i].is_vector() != vectors) {
        continue;
      }
      const int unit = vectors ? Segment::every_unit : table_[i].unit;
      if (table_[i].decay != decay_ || table_[i].group != group_) {
        end_segment(unit);
      }
      if (!table_[i].fused_with_previous) {
        layout_.elements = aligned(layout_.elements);
      }
      place(i);
      if (table_[i].is_token_embedding()) {
        end_segment(unit);
      }
    }
  }
  void end_segment(int unit, int tile = WeightGroup::whole) {
    layout_.elements = aligned(layout_.elements);
    end_segment_at(layout_.elements, unit, tile);
  }

  /// The matrices of a unit, each product's in at most so many tiles.
  void add_in_tiles(std::size_t first, std::size_t last, int tiles) {
    int next_tile = 0;
    for (std::size_t i = first; i < last;) {
      if (table_[i].is_vector()) {
        ++i;
        continue;
      }
      const std::int64_t start = aligned(layout_.elements);
      layout_.elements = start;
      const std::int64_t row = boxes_[i].extent[1];
      const int unit = table_[i].unit;
      std::int64_t rows = 0;
      do {
        rows += table_[i].is_vector() ? 0 : place(i);
        ++i;
      } while (i < last && (table_[i].fused_with_previous || table_[i].is_vector()));
      const auto count = static_cast<int>(std::min<std::int64_t>(tiles, row == 0 ? 0 : rows));
      for (int tile = 0; tile + 1 < count; ++tile) {
        end_segment_at(start + even_part(rows, count, tile).end() * row, unit, next_tile++);
      }
      end_segment(unit, next_tile++);
    }
  }
  FlatLayout take() { return std::move(layout_); }

 private:
  void end_segment_at(std::int64_t end, int unit, int tile) {
    const std::int64_t begin = layout_.segments.empty() ? 0 : layout_.segments.back().flat.end();
    if (end > begin) {
      layout_.segments.push_back({unit, {begin, end - begin}, decay_, group_, tile});
    }
  }
  /// Right after what is there. @return its rows
  std::int64_t place(std::size_t i) {
    FOURFOLD_EXPECT(!table_[i].fused_with_previous ||
                    (table_[i].decay == decay_ && table_[i].group == group_));
    decay_ = table_[i].decay;
    group_ = table_[i].group;
    layout_.ranges[i] = {layout_.elements, boxes_[i].elements()};
    layout_.elements = layout_.ranges[i].end();
    return boxes_[i].extent[0];
  }

  std::span<const ParameterSpec> table_;
  std::span<const Box> boxes_;
  FlatLayout layout_;
  bool decay_ = false;  ///< of what was placed last
  OptimizerGroup group_ = OptimizerGroup::others;
};

template <class Visit>
void for_each_unit(std::span<const ParameterSpec> table, const Visit& visit) {
  for (std::size_t first = 0; first < table.size();) {
    std::size_t last = first;
    while (last < table.size() && table[last].unit == table[first].unit) {
      ++last;
    }
    FOURFOLD_EXPECT(last == table.size() || table[first].unit < table[last].unit);
    visit(first, last);
    first = last;
  }
}

}  // namespace

Range FlatLayout::matrices(int unit) const noexcept {
  Range all;
  for (const Segment& segment : segments) {
    if (segment.unit == unit) {
      all = all.count == 0 ? segment.flat : Range{all.begin, segment.flat.end() - all.begin};
    }
  }
  return all;
}

FlatLayout flat_layout(std::span<const ParameterSpec> table, std::span<const Box> boxes,
                       int tiles) {
  FOURFOLD_EXPECT(table.size() == boxes.size() && tiles >= 1);
  Writer writer(table, boxes);
  for_each_unit(table, [&](std::size_t first, std::size_t last) {
    if (tiles > 1) {
      writer.add_in_tiles(first, last, tiles);
    } else {
      writer.add(first, last, false);
      writer.end_segment(table[first].unit);
    }
  });
  for_each_unit(table, [&](std::size_t first, std::size_t last) { writer.add(first, last, true); });
  writer.end_segment(Segment::every_unit);
  return writer.take();
}

FlatMemory::FlatMemory(const FlatLayout& layout, MatrixMemory matrices, UnitRange blocks,
                       device::MemoryUse use, DType dtype, device::Arena& arena) {
  if (matrices == MatrixMemory::whole) {
    const TensorView all = arena.take(use, dtype, Shape{layout.elements});
    pieces_.push_back({{0, layout.elements}, all, Segment::every_unit, own_memory});
    return;
  }
  int block_turns = 0;
  int end_turns = 0;
  for (const Segment& segment : layout.segments) {
    const bool is_block = blocks.contains(segment.unit);
    if (segment.unit == Segment::every_unit) {
      pieces_.push_back({segment.flat, arena.take(use, dtype, Shape{segment.flat.count}),
                         segment.part(), own_memory});
    } else if (segment.tile != WeightGroup::whole) {
      add(segment, is_block ? block_turns++ % 2 : 2 + end_turns++ % 2);
    } else {
      add(segment, is_block ? (segment.unit - blocks.begin) % 2 : 2);
    }
  }
  std::array<std::int64_t, buffers> sizes{};
  for (const Piece& piece : pieces_) {
    if (piece.buffer != own_memory) {
      std::int64_t& size = sizes[piece.buffer];
      size = std::max(size, piece.flat.count);
    }
  }
  std::array<TensorView, buffers> memory;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    memory[i] = arena.take(device::MemoryUse::communication, dtype, Shape{sizes[i]});
  }
  for (Piece& piece : pieces_) {
    if (piece.buffer != own_memory) {
      piece.memory = memory[piece.buffer].rows(0, piece.flat.count);
    }
  }
}

void FlatMemory::add(const Segment& segment, int buffer) {
  if (!pieces_.empty() && pieces_.back().part == segment.part()) {
    pieces_.back().flat.count = segment.flat.end() - pieces_.back().flat.begin;
  } else {
    pieces_.push_back({segment.flat, {}, segment.part(), buffer});
  }
}

const FlatMemory::Piece* FlatMemory::find(Range flat) const noexcept {
  const auto piece = std::ranges::find_if(pieces_, [&](const Piece& each) {
    return each.flat.begin <= flat.begin && flat.end() <= each.flat.end();
  });
  return piece == pieces_.end() ? nullptr : &*piece;
}

TensorView FlatMemory::at(Range flat) const {
  const Piece* const piece = find(flat);
  FOURFOLD_EXPECT(piece != nullptr);
  return piece->memory.rows(flat.begin - piece->flat.begin, flat.count);
}

int FlatMemory::buffer_of(WeightGroup part) const noexcept {
  const auto piece = std::ranges::find(pieces_, part, &Piece::part);
  return piece == pieces_.end() ? own_memory : piece->buffer;
}

}  // namespace fourfold::model
