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

  /// Those of `unit` that decay, or those that do not. The token embedding ends a segment.
  void add(std::size_t first, std::size_t last, bool decays) {
    for (std::size_t i = first; i < last; ++i) {
      if (table_[i].decays == decays) {
        const std::int64_t start = table_[i].follows ? layout_.elements : aligned(layout_.elements);
        layout_.ranges[i] = {start, boxes_[i].elements()};
        layout_.elements = layout_.ranges[i].end();
        if (table_[i].name == token_embedding_name) {
          end_segment(table_[i].unit, true);
        }
      }
    }
  }
  void end_segment(int unit, bool decays) {
    layout_.elements = aligned(layout_.elements);
    const std::int64_t begin = layout_.segments.empty() ? 0 : layout_.segments.back().flat.end();
    if (layout_.elements > begin) {
      layout_.segments.push_back({unit, {begin, layout_.elements - begin}, decays});
    }
  }
  FlatLayout take() { return std::move(layout_); }

 private:
  std::span<const ParameterSpec> table_;
  std::span<const Box> boxes_;
  FlatLayout layout_;
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

FlatLayout flat_layout(std::span<const ParameterSpec> table, std::span<const Box> boxes) {
  FOURFOLD_EXPECT(table.size() == boxes.size());
  Writer writer(table, boxes);
  for_each_unit(table, [&](std::size_t first, std::size_t last) {
    writer.add(first, last, true);
    writer.end_segment(table[first].unit, true);
  });
  for_each_unit(table,
                [&](std::size_t first, std::size_t last) { writer.add(first, last, false); });
  writer.end_segment(Segment::every_unit, false);
  return writer.take();
}

FlatMemory::FlatMemory(const FlatLayout& layout, MatrixMemory matrices, Units blocks,
                       device::MemoryUse use, DType dtype, device::Arena& arena) {
  if (matrices == MatrixMemory::whole) {
    const TensorView all = arena.take(use, dtype, Shape{layout.elements});
    parts_.push_back({{0, layout.elements}, all, Segment::every_unit, own_memory});
    return;
  }
  std::array<std::int64_t, buffers> sizes{};
  const auto buffer_for = [&](int unit) {
    return blocks.contains(unit) ? (unit - blocks.begin) % 2 : buffers - 1;
  };
  for (const Segment& segment : layout.segments) {
    const int unit = segment.unit;
    const bool begun = !parts_.empty() && parts_.back().unit == unit;
    if (unit == Segment::every_unit) {
      parts_.push_back(
          {segment.flat, arena.take(use, dtype, Shape{segment.flat.count}), unit, own_memory});
    } else if (!begun) {
      const Range flat = layout.matrices(unit);
      parts_.push_back({flat, {}, unit, buffer_for(unit)});
      std::int64_t& size = sizes[static_cast<std::size_t>(buffer_for(unit))];
      size = std::max(size, flat.count);
    }
  }
  std::array<TensorView, buffers> memory;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    memory[i] = arena.take(device::MemoryUse::communication, dtype, Shape{sizes[i]});
  }
  for (Part& part : parts_) {
    if (part.buffer != own_memory) {
      part.memory = memory[static_cast<std::size_t>(part.buffer)].rows(0, part.flat.count);
    }
  }
}

TensorView FlatMemory::at(Range flat) const {
  const auto part = std::ranges::find_if(parts_, [&](const Part& each) {
    return each.flat.begin <= flat.begin && flat.end() <= each.flat.end();
  });
  FOURFOLD_EXPECT(part != parts_.end());
  return part->memory.rows(flat.begin - part->flat.begin, flat.count);
}

int FlatMemory::buffer_of(int unit) const noexcept {
  const auto part = std::ranges::find(parts_, unit, &Part::unit);
  return part == parts_.end() ? own_memory : part->buffer;
}

}  // namespace fourfold::model
