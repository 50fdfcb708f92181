// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Every collective against its closed form, on whatever transport this file is linked with.
#include "each_algorithm.hpp"
#include "pattern.hpp"

#include <fourfold/base/philox.hpp>
#include <fourfold/comm/communicator.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace fourfold::comm {
namespace {

using harness::Findings;
using harness::Ranks;

/// Empty, fewer than ranks, odd, both sides of the small-message limit for several rank counts.
constexpr std::array<std::int64_t, 9> sizes{0, 1, 2, 3, 7, 1000, 1021, 4097, 20011};
/// Three chunks of a reduction at 4 bytes an element, the last one ragged.
constexpr std::int64_t several_chunks = (std::int64_t{5} << 19) + 12345;

template <class T>
constexpr bool is_integer = std::numeric_limits<T>::is_integer;

template <class T>
void check_all_reduce(Communicator& world, Findings& findings, ReduceOp op, std::int64_t elements) {
  auto values = filled<T>(world.rank(), elements);
  world.all_reduce(view(values), op, {}).wait({});
  const std::int64_t wrong = first_wrong(
      values, [&](std::int64_t i) { return reduced_pattern(op, world.size(), i); },
      tolerance_of<T>(world, op));
  findings.check(wrong < 0, fmt::format("all_reduce op {} of {} elements: element {} is wrong",
                                        static_cast<int>(op), elements, wrong));
}

template <class T>
void check_reduce_scatter(Communicator& world, Findings& findings, ReduceOp op,
                          const std::vector<std::int64_t>& counts) {
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const std::int64_t begin =
      std::accumulate(counts.begin(), counts.begin() + world.rank(), std::int64_t{0});
  const auto send = filled<T>(world.rank(), total);
  Values<T> recv(static_cast<std::size_t>(counts[world.rank()]), number<T>(99));
  world.reduce_scatter(view(send), view(recv), counts, op, {}).wait({});
  const std::int64_t wrong = first_wrong(
      recv, [&](std::int64_t i) { return reduced_pattern(op, world.size(), begin + i); },
      tolerance_of<T>(world, op));
  findings.check(wrong < 0, fmt::format("reduce_scatter op {} of {} elements: element {} is wrong",
                                        static_cast<int>(op), total, wrong));
  findings.check(send == filled<T>(world.rank(), total), "reduce_scatter changed its input");
}

template <class T>
void check_all_gather(Communicator& world, Findings& findings,
                      const std::vector<std::int64_t>& counts, bool in_place) {
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const std::int64_t begin =
      std::accumulate(counts.begin(), counts.begin() + world.rank(), std::int64_t{0});
  const auto own = filled<T>(world.rank(), counts[world.rank()]);
  Values<T> recv(static_cast<std::size_t>(total), number<T>(99));
  std::copy(own.begin(), own.end(), recv.begin() + begin);
  const ConstTensorView place(recv.data() + begin, {std::ssize(own)});
  world.all_gather(in_place ? place : view(own), view(recv), counts, {}).wait({});
  Values<T> expected;
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto part = filled<T>(rank, counts[rank]);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  findings.check(recv == expected, fmt::format("all_gather of {} elements", total));
}

template <class T>
void check_broadcast(Communicator& world, Findings& findings, std::int64_t elements, int root) {
  auto values = filled<T>(world.rank(), elements);
  world.broadcast(view(values), root, {}).wait({});
  findings.check(values == filled<T>(root, elements),
                 fmt::format("broadcast of {} elements from rank {}", elements, root));
}

/// Rank r sends r * ranks + s (mod 5) elements to rank s, times `scale`.
template <class T>
void check_all_to_all(Communicator& world, Findings& findings, std::int64_t scale) {
  const int ranks = world.size();
  const auto count = [&](int from, int to) { return scale * ((from * ranks + to) % 5); };
  std::vector<std::int64_t> send_counts;
  std::vector<std::int64_t> recv_counts;
  Values<T> send;
  Values<T> expected;
  for (int other = 0; other < ranks; ++other) {
    send_counts.push_back(count(world.rank(), other));
    recv_counts.push_back(count(other, world.rank()));
    const auto outgoing = filled<T>(world.rank(), send_counts.back(), other);
    const auto incoming = filled<T>(other, recv_counts.back(), world.rank());
    send.insert(send.end(), outgoing.begin(), outgoing.end());
    expected.insert(expected.end(), incoming.begin(), incoming.end());
  }
  Values<T> recv(expected.size(), number<T>(99));
  world.all_to_all(view(send), send_counts, view(recv), recv_counts, {}).wait({});
  findings.check(recv == expected, fmt::format("all_to_all with scale {}", scale));
}

TEMPLATE_TEST_CASE("reductions equal their closed form", "[collectives]", float, BFloat16, Float16,
                   double, std::int32_t, std::int64_t) {
  on_ranks_by_each_algorithm([](Communicator& world, Findings& findings) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::avg}) {
      if (is_integer<TestType> && op == ReduceOp::avg) {
        continue;
      }
      for (const std::int64_t elements : sizes) {
        check_all_reduce<TestType>(world, findings, op, elements);
      }
      for (const std::int64_t scale : {0, 1, 300, 1501}) {
        check_reduce_scatter<TestType>(world, findings, op, ragged_counts(world.size(), scale));
      }
    }
  });
}

TEMPLATE_TEST_CASE("movements bring every element to its place", "[collectives]", float, BFloat16,
                   Float16, double, std::int32_t, std::int64_t) {
  on_ranks_by_each_algorithm(
      [](Communicator& world, Findings& findings) {
        for (const std::int64_t scale : {0, 1, 300, 1501}) {
          const auto counts = ragged_counts(world.size(), scale);
          check_all_gather<TestType>(world, findings, counts, false);
          check_all_gather<TestType>(world, findings, counts, true);
          check_all_to_all<TestType>(world, findings, scale);
        }
        for (const std::int64_t elements : {0, 1, 1021, 9001}) {
          check_broadcast<TestType>(world, findings, elements, 0);
          check_broadcast<TestType>(world, findings, elements, world.size() - 1);
        }
      },
      Ranks::many);
}

TEST_CASE("operations of several chunks of messages", "[collectives]") {
  harness::on_ranks([](Communicator& world, Findings& findings) {
    world.use(Algorithm::direct);
    check_all_reduce<float>(world, findings, ReduceOp::sum, several_chunks);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(world.size()), 17);
    counts.back() = several_chunks / world.size();
    check_reduce_scatter<float>(world, findings, ReduceOp::sum, counts);
    check_all_gather<std::int32_t>(world, findings, counts, true);
    check_broadcast<float>(world, findings, several_chunks / 4, world.size() / 2);
    world.use(Algorithm::automatic);
  });
}

Values<float> random_values(int rank, std::int64_t elements) {
  const PhiloxKey key = philox_key(7, RandomUse::test, static_cast<std::uint64_t>(rank));
  Values<float> values(static_cast<std::size_t>(elements));
  for (std::int64_t i = 0; i < elements; ++i) {
    values[i] = std::ldexp(uniform_float(philox(key, static_cast<std::uint64_t>(i)).word[0]),
                           static_cast<int>(i % 20));
  }
  return values;
}

TEST_CASE("sums are taken in the order of ranks, so their bits are the same everywhere",
          "[collectives]") {
  on_ranks_by_each_algorithm(
      [](Communicator& world, Findings& findings) {
        if (world.algorithm() == Algorithm::tree || !world.sums_in_rank_order()) {
          return;  // in pairs: algorithm_test.cpp
        }
        for (const std::int64_t elements : {3, 300, 20001}) {
          auto expected = random_values(0, elements);
          for (int rank = 1; rank < world.size(); ++rank) {
            const auto values = random_values(rank, elements);
            for (std::int64_t i = 0; i < elements; ++i) {
              expected[i] += values[i];
            }
          }
          for (int repeat = 0; repeat < 2; ++repeat) {
            auto values = random_values(world.rank(), elements);
            world.all_reduce(view(values), ReduceOp::sum, {}).wait({});
            findings.check(values == expected, fmt::format("sum of {} elements", elements));
          }
        }
      },
      Ranks::many);
}

TEST_CASE("sums have the same bits on all ranks and every time", "[collectives]") {
  on_ranks_by_each_algorithm([](Communicator& world, Findings& findings) {
    for (const std::int64_t elements : {3, 300, 20001}) {
      std::string first;
      for (int repeat = 0; repeat < 3; ++repeat) {
        auto values = random_values(world.rank(), elements);
        world.all_reduce(view(values), ReduceOp::sum, {}).wait({});
        const std::string bits(reinterpret_cast<const char*>(values.data()),
                               values.size() * sizeof(float));
        const auto all = all_gather_text(world, bits);
        findings.check(std::ranges::count(all, bits) == world.size(), "the same on all ranks");
        findings.check(repeat == 0 || bits == first, "the same every time");
        first = bits;
        const double exact = [&] {
          double sum = 0;
          for (int rank = 0; rank < world.size(); ++rank) {
            sum += random_values(rank, elements).back();
          }
          return sum;
        }();
        findings.check(std::abs(values.back() - exact) <= 1e-6 * exact, "the sum");
      }
    }
  });
}

TEST_CASE("bf16 and f16 add up in float and round once", "[collectives]") {
  on_ranks_by_each_algorithm([](Communicator& world, Findings& findings) {
    if (!world.sums_in_rank_order()) {
      return;
    }
    // 256 is where bf16 counts in twos, 2048 where f16 does: added one by one, ones would vanish.
    for (const std::int64_t elements : {5, 20000}) {
      Values<BFloat16> brief(elements, BFloat16(world.rank() == 0 ? 256.0F : 1.0F));
      Values<Float16> half(elements, Float16(world.rank() == 0 ? 2048.0F : 1.0F));
      world.all_reduce(view(brief), ReduceOp::sum, {}).wait({});
      world.all_reduce(view(half), ReduceOp::sum, {}).wait({});
      const float ones = static_cast<float>(world.size() - 1);
      findings.check(brief.back() == BFloat16(256.0F + ones), "bf16 sum");
      findings.check(half.back() == Float16(2048.0F + ones), "f16 sum");
    }
  });
}

TEST_CASE("a NaN of any rank survives max and min", "[collectives]") {
  on_ranks_by_each_algorithm([](Communicator& world, Findings& findings) {
    for (int suspect = 0; suspect < world.size(); ++suspect) {
      const double value = world.rank() == suspect ? std::nan("") : world.rank();
      findings.check(std::isnan(all_reduce_scalar(world, value, ReduceOp::max)), "max");
      findings.check(std::isnan(all_reduce_scalar(world, value, ReduceOp::min)), "min");
    }
  });
}

TEST_CASE("scalars, texts and barriers", "[collectives]") {
  on_ranks_by_each_algorithm(
      [](Communicator& world, Findings& findings) {
        const int ranks = world.size();
        findings.check(all_reduce_scalar(world, std::int64_t{1} << 40, ReduceOp::sum) ==
                           (std::int64_t{1} << 40) * ranks,
                       "integer sum");
        findings.check(
            all_reduce_scalar(world, 0.5 * world.rank(), ReduceOp::avg) == 0.25 * (ranks - 1),
            "average");
        const auto texts = all_gather_text(world, std::string(world.rank() * 3000, 'x') + "!");
        findings.check(std::ssize(texts) == ranks, "number of texts");
        for (int rank = 0; rank < ranks; ++rank) {
          findings.check(texts[rank] == std::string(rank * 3000, 'x') + "!", "a gathered text");
        }
        const std::string own = world.rank() == ranks - 1 ? "from the last" : "no";
        findings.check(broadcast_text(world, own, ranks - 1) == "from the last", "broadcast text");
        findings.check(broadcast_text(world, "", 0).empty(), "empty text");
        for (int repeat = 0; repeat < 3; ++repeat) {
          world.barrier();
        }
      },
      Ranks::many);
}

TEST_CASE("operations in flight together end in any order of waiting", "[collectives]") {
  on_ranks_by_each_algorithm([](Communicator& world, Findings& findings) {
    auto large = filled<float>(world.rank(), 100001);
    auto small = filled<double>(world.rank(), 3);
    auto brief = filled<BFloat16>(world.rank(), 40000);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(world.size()), 1000);
    const auto part = filled<std::int32_t>(world.rank(), 1000);
    Values<std::int32_t> gathered(static_cast<std::size_t>(1000 * world.size()));
    Work first = world.all_reduce(view(large), ReduceOp::sum, {});
    Work second = world.all_reduce(view(small), ReduceOp::max, {});
    Work third = world.all_gather(view(part), view(gathered), counts, {});
    Work fourth = world.all_reduce(view(brief), ReduceOp::min, {});
    fourth.wait({});
    while (!second.test()) {
    }
    second.wait({});
    third = Work();  // waits for what it held
    first.wait({});
    const auto expect = [&](ReduceOp op) {
      return [&world, op](std::int64_t i) { return reduced_pattern(op, world.size(), i); };
    };
    findings.check(first_wrong(large, expect(ReduceOp::sum)) < 0, "first");
    findings.check(first_wrong(small, expect(ReduceOp::max)) < 0, "second");
    findings.check(first_wrong(brief, expect(ReduceOp::min)) < 0, "fourth");
    findings.check(gathered[static_cast<std::size_t>(1000 * world.size() - 1)] ==
                       pattern(world.size() - 1, 999),
                   "third");
  });
}

}  // namespace
}  // namespace fourfold::comm
