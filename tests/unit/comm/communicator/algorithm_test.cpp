// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// The ways collectives go: whichever is chosen, a sum has the same bits.
#include "host/each_algorithm.hpp"
#include "host/pattern.hpp"

#include <fourfold/base/philox.hpp>
#include <fourfold/comm/algorithm.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

namespace fourfold::comm {
namespace {

using harness::Findings;
using harness::on_ranks;
using harness::Ranks;

/// Values of many digits and different sizes: the order in which they are added is seen.
template <class T>
T uneven(int rank, std::int64_t i) {
  const auto place = static_cast<std::uint64_t>(i * 64 + rank);
  const std::uint64_t mixed = (place * 0x9E3779B97F4A7C15U) ^ (place * 0xC2B2AE3D27D4EB4FU >> 29);
  const double share = static_cast<double>(mixed >> 11) / 9'007'199'254'740'992.0 - 0.5;
  const double value = share * static_cast<double>(1 << (mixed % 21)) / 1024;
  if constexpr (sizeof(T) == 2) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
Values<T> uneven_values(int rank, std::int64_t elements) {
  Values<T> values(static_cast<std::size_t>(elements));
  for (std::int64_t i = 0; i < elements; ++i) {
    values[static_cast<std::size_t>(i)] = uneven<T>(rank, i);
  }
  return values;
}

/// In the order that the algorithm promises, 16 bits in float with one rounding.
template <class T>
Values<T> sums_by_hand(Algorithm algorithm, int ranks, std::int64_t elements) {
  using Wide = std::conditional_t<sizeof(T) == 2, float, T>;
  Values<T> sums(static_cast<std::size_t>(elements));
  std::vector<Wide> values(static_cast<std::size_t>(ranks));
  for (std::int64_t i = 0; i < elements; ++i) {
    for (int rank = 0; rank < ranks; ++rank) {
      values[static_cast<std::size_t>(rank)] = static_cast<Wide>(uneven<T>(rank, i));
    }
    std::size_t left = values.size();
    if (algorithm == Algorithm::tree) {
      // Neighbours, then neighbours of those, until one is left; who has none waits.
      for (; left > 1; left = (left + 1) / 2) {
        for (std::size_t pair = 0; pair < (left + 1) / 2; ++pair) {
          const bool alone = 2 * pair + 1 == left;
          values[pair] = alone ? values[2 * pair] : values[2 * pair] + values[2 * pair + 1];
        }
      }
    }
    for (std::size_t rank = 1; rank < left; ++rank) {
      values[0] += values[rank];
    }
    sums[static_cast<std::size_t>(i)] = static_cast<T>(values[0]);
  }
  return sums;
}

/// Around the borders of areas, pieces and small messages, and far from them.
constexpr std::int64_t odd_sizes[] = {0,    1,    2,     7,     63,    65,    1021,   4095,
                                      4097, 8191, 16385, 32768, 65537, 99991, 131073, 400009};

TEMPLATE_TEST_CASE("every algorithm gives the bits of the sum in its order", "[algorithm]", float,
                   BFloat16, Float16, double) {
  on_ranks([](Communicator& world, Findings& findings) {
    for (const std::int64_t elements : odd_sizes) {
      if (elements > 100'000 && sizeof(TestType) != sizeof(float)) {
        continue;  // more steps than a window has slots, once
      }
      const auto in_ranks = sums_by_hand<TestType>(Algorithm::direct, world.size(), elements);
      const auto in_pairs = sums_by_hand<TestType>(Algorithm::tree, world.size(), elements);
      if (sizeof(TestType) > 2 && world.size() >= 4 && elements > 1000) {
        findings.check(in_ranks != in_pairs, "values that tell one order from the other");
      }
      for (const Algorithm algorithm : each_algorithm) {
        world.use(algorithm);
        const auto& expected = algorithm == Algorithm::tree ? in_pairs : in_ranks;
        auto values = uneven_values<TestType>(world.rank(), elements);
        world.all_reduce(view(values), ReduceOp::sum, {}).wait({});
        findings.check(values == expected,
                       fmt::format("{}: sum of {} elements", name(algorithm), elements));
      }
    }
    world.use(Algorithm::automatic);
  });
}

TEMPLATE_TEST_CASE("reduce_scatter has all_reduce's bits however the elements are dealt",
                   "[algorithm]", float, BFloat16) {
  on_ranks_by_each_algorithm([](Communicator& world, Findings& findings) {
    for (const std::int64_t scale : {0, 1, 37, 1500, 9001}) {
      for (const bool in_place : {false, true}) {
        auto counts = ragged_counts(world.size(), scale);
        std::rotate(counts.begin(), counts.begin() + counts.size() / 2, counts.end());
        const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
        const std::int64_t begin =
            std::accumulate(counts.begin(), counts.begin() + world.rank(), std::int64_t{0});
        const auto own_count = static_cast<std::size_t>(counts[world.rank()]);
        const auto expected = sums_by_hand<TestType>(world.algorithm(), world.size(), total);
        const auto before = uneven_values<TestType>(world.rank(), total);
        auto send = before;
        Values<TestType> apart(own_count, number<TestType>(99));
        TestType* const target = in_place ? send.data() + begin : apart.data();
        world
            .reduce_scatter(view(std::as_const(send)),
                            {target, {static_cast<std::int64_t>(own_count)}}, counts, ReduceOp::sum,
                            {})
            .wait({});
        findings.check(std::equal(target, target + own_count, expected.begin() + begin),
                       fmt::format("scale {}, in place {}", scale, in_place));
        // The rest of what was sent stays as it was.
        std::copy_n(before.begin() + begin, own_count, send.begin() + begin);
        findings.check(send == before, "what others reduce was changed");
      }
    }
  });
}

TEST_CASE("operations of all kinds in flight on several communicators", "[algorithm]") {
  on_ranks_by_each_algorithm([](Communicator& world, Findings& findings) {
    const int ranks = world.size();
    const auto half = world.split(world.rank() % 2, world.rank(), "half");
    for (int repeat = 0; repeat < 3; ++repeat) {
      const std::int64_t elements = 60'013 + 1000 * repeat;
      std::vector<Values<float>> sums(4, uneven_values<float>(world.rank(), elements));
      auto small = filled<double>(half->rank(), 5);
      auto spread = filled<float>(world.rank(), elements);
      std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), 301);
      const auto part = filled<BFloat16>(world.rank(), 301);
      Values<BFloat16> gathered(static_cast<std::size_t>(301 * ranks));
      Values<BFloat16> dealt(gathered.size());
      const auto outgoing = filled<BFloat16>(world.rank(), 301 * ranks);
      std::vector<Work> works;
      for (auto& values : sums) {
        works.push_back(world.all_reduce(view(values), ReduceOp::sum, {}));
        works.push_back(half->all_reduce(view(small), ReduceOp::max, {}));
      }
      works.push_back(world.broadcast(view(spread), ranks - 1, {}));
      works.push_back(world.all_to_all(view(outgoing), counts, view(dealt), counts, {}));
      works.push_back(world.all_gather(view(part), view(gathered), counts, {}));
      // The last first: those before it have to move meanwhile.
      while (!works.empty()) {
        while (works.size() % 3 == 0 && !works.back().test()) {
        }
        works.back().wait({});
        works.pop_back();
      }
      const auto expected = sums_by_hand<float>(world.algorithm(), ranks, elements);
      for (const auto& values : sums) {
        findings.check(values == expected, "a sum");
      }
      findings.check(spread == filled<float>(ranks - 1, elements), "broadcast");
      for (int other = 0; other < ranks; ++other) {
        const auto at = static_cast<std::size_t>(301 * other + 17);
        findings.check(gathered[at] == number<BFloat16>(pattern(other, 17)), "all_gather");
        findings.check(dealt[at] == number<BFloat16>(pattern(other, 301 * world.rank() + 17)),
                       "all_to_all");
      }
      findings.check(first_wrong(small,
                                 [&](std::int64_t i) {
                                   return reduced_pattern(ReduceOp::max, half->size(), i);
                                 }) < 0,
                     "maximum");
    }
  });
}

TEST_CASE("one algorithm may follow another", "[algorithm]") {
  on_ranks([](Communicator& world, Findings& findings) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      for (const Algorithm algorithm : each_algorithm) {
        world.use(algorithm);
        findings.check(world.size() == 1 || world.algorithm() == algorithm, "algorithm()");
        auto values = filled<float>(world.rank(), 30'001);
        world.all_reduce(view(values), ReduceOp::sum, {}).wait({});
        world.barrier();
        findings.check(first_wrong(values,
                                   [&](std::int64_t i) {
                                     return reduced_pattern(ReduceOp::sum, world.size(), i);
                                   }) < 0,
                       "sum");
      }
    }
    world.use(Algorithm::automatic);
    findings.check(world.algorithm() != Algorithm::automatic, "automatic is one of the others");
  });
}

TEST_CASE("algorithms have names", "[algorithm]") {
  for (const Algorithm algorithm : values_in(named_values<Algorithm>)) {
    CHECK(value_named<Algorithm>(name(algorithm)) == algorithm);
  }
  CHECK_FALSE(value_named<Algorithm>("fast").has_value());
}

}  // namespace
}  // namespace fourfold::comm
