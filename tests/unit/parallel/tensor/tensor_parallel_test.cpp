// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "shared_arena.hpp"
#include "trace/counting_communicator.hpp"

#include <fourfold/device/arena.hpp>
#include <fourfold/harness/on_ranks.hpp>
#include <fourfold/harness/shared_vector.hpp>
#include <fourfold/parallel/tensor_parallel.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::parallel {
namespace {

using comm::Communicator;
using harness::Findings;
using harness::on_ranks;
using test::CountingCommunicator;

constexpr std::int64_t rows = 13;  // no number of ranks but one divides it
constexpr std::int64_t features = 3;
constexpr std::int64_t f32_bytes = 4;

float value(std::int64_t element, int salt) {
  return static_cast<float>(7 * element % 31 + salt);
}

/// The rows of a whole tensor that a rank holds.
harness::SharedVector<float> part_of_whole(Range held, int salt) {
  harness::SharedVector<float> part;
  for (std::int64_t i = held.begin * features; i < held.end() * features; ++i) {
    part.push_back(value(i, salt));
  }
  return part;
}

ConstTensorView view(const harness::SharedVector<float>& values) {
  return {values.data(), DType::f32, {std::ssize(values) / features, features}};
}

void check_whole(ConstTensorView all_TD, int salt, const std::string& what, Findings& findings) {
  findings.check(all_TD.elements() == rows * features, what + ": size");
  for (std::int64_t i = 0; i < all_TD.elements(); ++i) {
    findings.check(all_TD.as<float>()[i] == value(i, salt), what + ": value");
  }
}

struct Rank {
  Rank(Communicator& world, bool sequence_parallel)
      : counted(world),
        tensor(counted,
               {.sequence_parallel = sequence_parallel,
                .rows = rows,
                .hidden = features,
                .compute = DType::f32},
               arena) {}
  fourfold::harness::SharedArena arena;
  CountingCommunicator counted;
  TensorParallel tensor;
};

TEST_CASE("gathers give all rows, begun ahead or not, and send each row once to each other rank",
          "[tensor_parallel]") {
  on_ranks([](Communicator& world, Findings& findings) {
    Rank mine(world, true);
    const Range held = mine.tensor.residual_rows(rows);
    const harness::SharedVector<float> first = part_of_whole(held, 0);
    const harness::SharedVector<float> second = part_of_whole(held, 100);
    const harness::SharedVector<float> third = part_of_whole(held, 200);
    const std::int64_t bytes =
        world.size() == 1 ? 0 : (world.size() - 1) * held.count * features * f32_bytes;

    if (world.size() > 1) {
      check_whole(mine.tensor.gather_rows(view(first), rows, {}), 0, "at once", findings);
      findings.check(mine.counted.sent_bytes() == bytes, "bytes");
      // Another gather comes between one that is begun and its use; then one follows the other.
      mine.tensor.prefetch_rows(view(second), rows, {});
      check_whole(mine.tensor.gather_rows(view(first), rows, {}), 0, "between", findings);
      const ConstTensorView used = mine.tensor.gather_rows(view(second), rows, {});
      mine.tensor.prefetch_rows(view(third), rows, {});
      check_whole(used, 100, "while the next is under way", findings);
      check_whole(mine.tensor.gather_rows(view(third), rows, {}), 200, "next", findings);
      findings.check(mine.counted.sent_bytes() == 4 * bytes, "bytes of four gathers");
      // What was begun is used up: the same rows are sent again.
      check_whole(mine.tensor.gather_rows(view(third), rows, {}), 200, "again", findings);
      findings.check(mine.counted.sent_bytes() == 5 * bytes, "bytes of five gathers");
    } else {
      findings.check(mine.tensor.gather_rows(view(first), rows, {}).data() == first.data(),
                     "one rank holds all rows");
    }
  });
}

TEST_CASE("sums over ranks go to the rows held, or to all", "[tensor_parallel]") {
  on_ranks([](Communicator& world, Findings& findings) {
    for (const bool sequence_parallel : {false, true}) {
      Rank mine(world, sequence_parallel);
      const Range held = mine.tensor.residual_rows(rows);
      findings.check(sequence_parallel || held == Range{0, rows}, "all rows");
      harness::SharedVector<float> partial(rows * features);
      for (std::int64_t i = 0; i < std::ssize(partial); ++i) {
        partial[static_cast<std::size_t>(i)] = value(i, world.rank());
      }
      harness::SharedVector<float> sum(static_cast<std::size_t>(held.count * features));
      const bool in_place = held.count == rows;
      const TensorView partial_TD(partial.data(), DType::f32, {rows, features});
      const TensorView sum_RD =
          in_place ? partial_TD : TensorView(sum.data(), DType::f32, {held.count, features});
      mine.tensor.reduce_rows(partial_TD, sum_RD, {});
      const int ranks = world.size();
      for (std::int64_t i = 0; i < sum_RD.elements(); ++i) {
        const std::int64_t element = held.begin * features + i;
        const float expected = static_cast<float>(ranks) * value(element, 0) +
                               static_cast<float>(ranks * (ranks - 1) / 2);
        findings.check(sum_RD.as<float>()[i] == expected, "sum");
      }
      const std::int64_t kept = even_part(rows * features, ranks, world.rank()).count;
      const std::int64_t bytes = sequence_parallel ? (rows - held.count) * features * f32_bytes
                                                   : 2 * (rows * features - kept) * f32_bytes;
      findings.check(mine.counted.sent_bytes() == (ranks == 1 ? 0 : bytes), "bytes");
    }
  });
}

TEST_CASE("the loss sends three numbers per row, whatever the vocabulary", "[tensor_parallel]") {
  on_ranks([](Communicator& world, Findings& findings) {
    Rank mine(world, false);
    constexpr std::int64_t vocabulary = 101;
    const Range columns = even_part(vocabulary, world.size(), world.rank());
    harness::SharedVector<float> logits(static_cast<std::size_t>(rows * columns.count), 0.0F);
    harness::SharedVector<std::int32_t> target(rows, 5);
    harness::SharedVector<float> loss(rows);
    if (world.size() == 1) {
      return;  // kernels::cross_entropy does it
    }
    mine.tensor.cross_entropy({columns.begin, vocabulary},
                              TensorView(logits.data(), DType::f32, {rows, columns.count}),
                              ConstTensorView(target.data(), DType::i32, {rows}),
                              TensorView(loss.data(), DType::f32, {rows}), 1.0F, {});
    findings.check(mine.counted.sent_bytes() == (world.size() - 1) * rows * 3 * f32_bytes,
                   fmt::format("{} bytes", mine.counted.sent_bytes()));
    for (const float each : loss) {
      findings.check(std::abs(each - std::log(static_cast<float>(vocabulary))) < 1e-5F, "loss");
    }
  });
}

}  // namespace
}  // namespace fourfold::parallel
