// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/parallel/gradient_buckets.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <atomic>
#include <vector>

using fourfold::DType;
using fourfold::Range;
using fourfold::device::Tensor;
using fourfold::parallel::GradientBuckets;

namespace {

constexpr std::int64_t elements = 1000;

/// Units as a backward pass finishes them: last in memory first, one larger than any bucket, one
/// empty, and a gap (elements 990..999) that belongs to nobody.
const std::vector<Range> units{{900, 90}, {880, 20}, {880, 0}, {200, 680}, {150, 50}, {0, 150}};

float value(int rank, std::int64_t element) {
  return static_cast<float>((rank + 1) * 1000 + element);  // sums of these are exact in float
}

}  // namespace

TEST_CASE("gradients are summed over ranks whatever the bucket size", "[gradient_buckets]") {
  const int ranks = GENERATE(1, 2, 3, 8);
  const std::int64_t bucket_bytes = GENERATE(4, 64, 400, 1000, 1 << 20);
  std::atomic<int> wrong = 0;
  fourfold::comm::run_ranks(ranks, [&](fourfold::comm::Communicator& world) {
    const Tensor gradients(DType::f32, {elements});
    GradientBuckets buckets(world, gradients, units, bucket_bytes);
    for (int step = 0; step < 2; ++step) {  // the second step reuses everything
      for (std::int64_t i = 0; i < elements; ++i) {
        gradients.as<float>()[i] = value(world.rank(), i);
      }
      for (std::size_t i = 0; i < units.size(); ++i) {
        buckets.next_ready({});
      }
      buckets.wait_all({});
      for (std::int64_t i = 0; i < elements; ++i) {
        float expected = value(world.rank(), i);
        if (i < 990) {
          expected = 0;
          for (int rank = 0; rank < ranks; ++rank) {
            expected += value(rank, i);
          }
        }
        wrong += gradients.as<float>()[i] == expected ? 0 : 1;
      }
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("neighbours share a bucket and a large unit is cut", "[gradient_buckets]") {
  fourfold::comm::run_ranks(1, [](fourfold::comm::Communicator& world) {
    const Tensor gradients(DType::f32, {elements});
    CHECK(GradientBuckets(world, gradients, units, 1 << 20).buckets() == 1);
    // 90 + 20 share; 680 is cut into 170 x 4; 50 + 150 exceed 170, so they stay apart.
    CHECK(GradientBuckets(world, gradients, units, 170 * 4).buckets() == 1 + 4 + 2);
    const std::vector<Range> apart{{500, 10}, {0, 10}};
    CHECK(GradientBuckets(world, gradients, apart, 1 << 20).buckets() == 2);
  });
}
