// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the kernels' own calls of CUDA make of a device that fails: what the program then ends
/// with.
#include "failing_device.hpp"
#include "matmul/matmul_algorithm.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/device/timed_event.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <functional>

using fourfold::ExitCode;
using fourfold::SystemError;
using fourfold::device::Stream;
using fourfold::device::TimedEvent;
using fourfold::harness::FailingDevice;
using fourfold::kernels::time_ways;

namespace {

void expect_failure(const char* plan, ExitCode code, const char* words,
                    const std::function<void()>& call) {
  CAPTURE(plan);
  const FailingDevice failing(plan);
  try {
    call();
    FAIL_CHECK("nothing was thrown");
  } catch (const SystemError& error) {
    CHECK(error.code() == code);
    CHECK_THAT(error.what(), Catch::Matchers::StartsWith("GPU 0 (Emulated GPU): "));
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring(words));
  }
}

}  // namespace

TEST_CASE("a device that fails while products are measured is no bug", "[products]") {
  const Stream stream;
  const auto measure = [&stream] {
    static_cast<void>(time_ways(1, stream, [](std::size_t /*way*/) { return true; }));
  };
  measure();
  // 214: an uncorrectable error of its memory; 719: a kernel has failed; 400: what is none was
  // given.
  expect_failure("cudaEventRecord:1:214", ExitCode::node_fault,
                 "cudaEventRecord failed (cudaErrorECCUncorrectable", measure);
  expect_failure("cudaEventQuery:1:719", ExitCode::node_fault, "cudaEventQuery failed", [&stream] {
    TimedEvent event;
    event.record(stream);
    static_cast<void>(event.has_happened());
  });
  expect_failure("cudaEventElapsedTime:1:719", ExitCode::node_fault, "cudaEventElapsedTime failed",
                 measure);
  expect_failure("cudaEventSynchronize:1:400", ExitCode::internal, "this is a bug", measure);
}
