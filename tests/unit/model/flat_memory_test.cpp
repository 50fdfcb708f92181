// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "shared_arena.hpp"
#include "small_models.hpp"

#include <fourfold/model/flat_memory.hpp>
#include <fourfold/model/presets.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <set>
#include <vector>

namespace fourfold::model {
namespace {

using device::Arena;
using device::MemoryUse;

TEST_CASE("the token embedding is a segment of its own, wherever it is", "[flat_memory]") {
  const Architecture config = model_test::small(Family::gpt2);
  const int head = all_units(config).end - 1;
  const auto front = parameter_table(config, UnitRange{0, 2});
  const auto back = parameter_table(config, UnitRange{2, head + 1});
  const FlatLayout first = flat_layout(front, whole_boxes(front));
  const FlatLayout last = flat_layout(back, whole_boxes(back));
  REQUIRE(first.segments.front().unit == 0);
  CHECK(first.segments.front().flat.begin == first.ranges.front().begin);
  CHECK(first.segments[1].unit == 0);  // positions
  const Segment& copy = last.segments[last.segments.size() - 2];
  CHECK(copy.unit == head);
  CHECK(copy.flat.count == first.segments.front().flat.count);
  CHECK(last.segments.back().unit == Segment::every_unit);
  CHECK(last.matrices(head) == copy.flat);
  CHECK(last.matrices(0) == Range{});
}

TEST_CASE("a segment ends where weight decay begins or ends", "[flat_memory]") {
  auto table = parameter_table(model_test::small(Family::gpt2));
  const auto spec = [&](const std::string& name) -> ParameterSpec& {
    return *std::ranges::find(table, name, &ParameterSpec::name);
  };
  spec("embedding.position.weight").decay = false;
  spec("layers.0.attn.o_proj.weight").decay = false;
  spec("final_norm.weight").decay = true;
  for (const int tiles : {1, 3}) {
    const FlatLayout layout = flat_layout(table, whole_boxes(table), tiles);
    std::int64_t next = 0;
    for (const Segment& segment : layout.segments) {
      CHECK(segment.flat.begin == next);
      next = segment.flat.end();
    }
    CHECK(next == layout.elements);
    for (std::size_t i = 0; i < table.size(); ++i) {
      for (const Segment& segment : layout.segments) {
        if (intersection(segment.flat, layout.ranges[i]).count > 0) {
          CAPTURE(table[i].name, tiles);
          CHECK(segment.decay == table[i].decay);
          CHECK(segment.has_vectors() == table[i].is_vector());
        }
      }
    }
  }
}

TEST_CASE("units that take turns share buffers, neighbours never the same", "[flat_memory]") {
  Architecture config = model_test::small(Family::llama, 0, false);
  config.layers = 5;
  const UnitRange blocks{1, 6};
  const auto table = parameter_table(config);
  const FlatLayout layout = flat_layout(table, whole_boxes(table));
  fourfold::harness::SharedArena arena;
  const FlatMemory memory(layout, MatrixMemory::double_buffered, blocks, MemoryUse::weights,
                          DType::f32, arena);
  for (int unit = 1; unit + 1 < blocks.end; ++unit) {
    CHECK(memory.buffer_of(unit) != memory.buffer_of(unit + 1));
  }
  CHECK(memory.buffer_of(0) == memory.buffer_of(blocks.end));
  CHECK(std::set{memory.buffer_of(0), memory.buffer_of(1), memory.buffer_of(2)} ==
        std::set{0, 1, 2});
  CHECK(memory.buffer_of(Segment::every_unit) == FlatMemory::own_memory);

  const Range second = layout.matrices(2);
  CHECK(memory.at(second).elements() == second.count);
  CHECK(memory.at({second.begin + 3, 5}).data() == memory.at(second).rows(3, 5).data());
  CHECK(memory.at(layout.matrices(1)).data() == memory.at(layout.matrices(3)).data());
  CHECK(memory.at(layout.matrices(1)).data() != memory.at(second).data());
  const std::int64_t ends = std::max(layout.matrices(0).count, layout.matrices(6).count);
  CHECK(arena.bytes(MemoryUse::communication) ==
        4 * static_cast<std::size_t>(2 * second.count + ends));
  CHECK(arena.bytes(MemoryUse::weights) ==
        4 * static_cast<std::size_t>(layout.segments.back().flat.count));
}

}  // namespace
}  // namespace fourfold::model
