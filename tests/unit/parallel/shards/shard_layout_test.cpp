// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "small_architecture.hpp"

#include <fourfold/parallel/shard_layout.hpp>
#include <fourfold/parallel/tensor_cut.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace fourfold::parallel {
namespace {

model::Architecture odd_model(model::Family family, bool tied) {
  return model_test::small_model({.family = family,
                                  .hidden = 20,
                                  .heads = 4,
                                  .kv_heads = family == model::Family::gpt2 ? 4 : 2,
                                  .head_dim = 6,
                                  .ffn = 33,
                                  .vocab = 67,
                                  .tied = tied});
}

struct Held {
  std::vector<model::ParameterSpec> table;
  std::vector<Box> boxes;
  model::FlatLayout layout;
};

Held held(std::vector<model::ParameterSpec> table, int tp, int rank, int tiles = 1) {
  std::vector<Box> boxes = tensor_boxes(table, tp, rank);
  model::FlatLayout layout = model::flat_layout(table, boxes, tiles);
  return {std::move(table), std::move(boxes), std::move(layout)};
}

TEST_CASE("shares cover every element once, in whole rows, and differ by little",
          "[shard_layout]") {
  const auto family = GENERATE(model::Family::gpt2, model::Family::llama);
  const int tp = GENERATE(1, 2);
  const int ranks = GENERATE(1, 2, 3, 8, 64, 1000);
  const int tiles = GENERATE(1, 3, 50);
  CAPTURE(ranks, tp, tiles);
  const model::Architecture config = odd_model(family, GENERATE(true, false));
  const Held mine = held(model::parameter_table(config), tp, tp - 1, tiles);
  const ShardLayout shards(mine.table, mine.boxes, mine.layout, ranks);

  std::int64_t largest_row = 0;
  for (const Box& box : mine.boxes) {
    largest_row = std::max(largest_row, box.elements() / box.extent[0]);
  }
  for (std::size_t i = 0; i < mine.layout.segments.size(); ++i) {
    const Range whole = mine.layout.segments[i].flat;
    std::int64_t next = whole.begin;
    for (int rank = 0; rank < ranks; ++rank) {
      const Range share = shards.share(i, rank);
      CHECK(share.begin == next);
      CHECK(share.count <= whole.count / ranks + 2 * largest_row);
      next = share.end();
    }
    CHECK(next == whole.end());
  }

  std::vector<int> owners(static_cast<std::size_t>(mine.layout.elements), 0);
  std::vector<std::vector<Box>> boxes(mine.table.size());
  for (int rank = 0; rank < ranks; ++rank) {
    for (const ShardPiece& piece : shards.pieces(rank)) {
      CHECK(piece.box.elements() == piece.flat.count);
      CHECK(contains(mine.boxes[piece.parameter], piece.box));
      boxes[piece.parameter].push_back(piece.box);
      // Rows of the box are where the flat range says.
      const Range flat = mine.layout.ranges[piece.parameter];
      const std::int64_t row = flat.count / mine.boxes[piece.parameter].extent[0];
      CHECK((piece.flat.begin - flat.begin) ==
            (piece.box.offset[0] - mine.boxes[piece.parameter].offset[0]) * row);
      for (std::int64_t element = piece.flat.begin; element < piece.flat.end(); ++element) {
        ++owners[static_cast<std::size_t>(element)];
      }
    }
  }
  CHECK(std::ranges::count_if(owners, [](int count) { return count > 1; }) == 0);
  for (std::size_t i = 0; i < mine.table.size(); ++i) {
    const std::int64_t covered =
        std::transform_reduce(boxes[i].begin(), boxes[i].end(), std::int64_t{0}, std::plus<>(),
                              [](const Box& box) { return box.elements(); });
    CAPTURE(mine.table[i].name);
    CHECK(covered == mine.boxes[i].elements());
  }
}

TEST_CASE("both holders of a tied embedding cut it alike", "[shard_layout]") {
  const model::Architecture config = odd_model(model::Family::gpt2, true);
  const model::UnitRange first{0, 2};
  const model::UnitRange last{2, 5};
  const int tiles = GENERATE(1, 3);
  for (const int ranks : {2, 5, 8}) {
    const Held front = held(model::parameter_table(config, first), 2, 1, tiles);
    const Held back = held(model::parameter_table(config, last), 2, 1, tiles);
    const ShardLayout a(front.table, front.boxes, front.layout, ranks);
    const ShardLayout b(back.table, back.boxes, back.layout, ranks);
    const auto embedding_of = [](const Held& held, const ShardLayout& layout, int rank) {
      for (const ShardPiece& piece : layout.pieces(rank)) {
        if (held.table[piece.parameter].name == model::token_embedding_name) {
          return piece.box;
        }
      }
      return Box{};
    };
    for (int rank = 0; rank < ranks; ++rank) {
      const Box box = embedding_of(front, a, rank);
      CHECK(box == embedding_of(back, b, rank));
      CHECK(!box.empty());
    }
  }
}

TEST_CASE("a part of a segment is counted among the ranks whose shares it meets",
          "[shard_layout]") {
  const model::Architecture config = odd_model(model::Family::llama, false);
  const Held mine = held(model::parameter_table(config), 1, 0);
  const ShardLayout shards(mine.table, mine.boxes, mine.layout, 3);
  const Range segment = mine.layout.segments[1].flat;
  const Range first = shards.share(1, 0);
  CHECK(shards.counts(1, {segment.begin, 5}) == std::vector<std::int64_t>{5, 0, 0});
  CHECK(shards.counts(1, {first.end() - 2, 7}) == std::vector<std::int64_t>{2, 5, 0});
  CHECK(shards.counts(1, {segment.end(), 0}) == std::vector<std::int64_t>{0, 0, 0});
}

}  // namespace
}  // namespace fourfold::parallel
