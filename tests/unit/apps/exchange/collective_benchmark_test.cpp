// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/exchange/collective_benchmark.hpp>
#include <fourfold/exchange/measure.hpp>

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <stdexcept>

namespace fourfold::exchange {
namespace {

constexpr DType dtypes[] = {DType::f32, DType::bf16, DType::f16,
                            DType::f64, DType::i32,  DType::i64};

Extent extent_for(Operation operation, DType dtype, int ranks, std::int64_t bytes = 20'000) {
  return extent_of(operation, bytes, static_cast<std::int64_t>(size_in_bytes(dtype)), ranks);
}

TEST_CASE("a transport that works has no wrong elements", "[collective_benchmark]") {
  for (const int ranks : {1, 2, 3, 5}) {
    std::atomic<std::int64_t> wrong = 0;
    comm::run_ranks(ranks, [&](comm::Communicator& world) {
      for (const Operation operation : all_operations) {
        if (operation == Operation::send_recv && ranks == 1) {
          continue;
        }
        for (const DType dtype : dtypes) {
          CollectiveBenchmark collective_benchmark(operation, extent_for(operation, dtype, ranks),
                                                   dtype, world);
          wrong += collective_benchmark.wrong_elements();
          collective_benchmark.run();
        }
      }
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("a transport that moves nothing is found out", "[collective_benchmark]") {
  const auto line = comm::make_dry_run(1, 3, "line");
  for (const Operation operation : all_operations) {
    for (const DType dtype : dtypes) {
      const Extent extent = extent_for(operation, dtype, 3);
      CollectiveBenchmark collective_benchmark(operation, extent, dtype, *line);
      // Its own part may be in place; nearly nothing else is.
      CHECK(collective_benchmark.wrong_elements() > extent.recv_elements / 2);
    }
  }
}

TEST_CASE("a call that is measured took some time on the slowest rank", "[collective_benchmark]") {
  comm::run_ranks(2, [](comm::Communicator& world) {
    const Extent extent = extent_for(Operation::all_reduce, DType::f32, 2);
    CollectiveBenchmark collective_benchmark(Operation::all_reduce, extent, DType::f32, world);
    const Timing timing = measure(collective_benchmark, nullptr, world,
                                  {.warmup = 1, .iterations = 3, .budget_s = 0});
    // All ranks have to come to the same number.
    const double least = comm::all_reduce_scalar(world, timing.call_s, comm::ReduceOp::min);
    if (!(timing.call_s > 0) || least != timing.call_s || timing.library_call_s) {
      throw std::runtime_error("the time is not that of all ranks");
    }
  });
}

}  // namespace
}  // namespace fourfold::exchange
