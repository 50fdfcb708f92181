// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A device that is told to record nothing.
#include "captured_log.hpp"
#include "failing_device.hpp"
#include "run/tiny_run.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

using fourfold::test::RunTrace;
using fourfold::test::TinyRun;

TEST_CASE("a run whose micro-batches cannot be recorded says so and goes on", "[cuda_graphs]") {
  const TinyRun tiny("gpt2");
  const RunTrace without = tiny.train(1, 5, "without", {"train.cuda_graphs=false"});
  const fourfold::harness::CapturedLog log;
  // Not supported, and out of memory.
  const char* const plan = GENERATE("cudaGraphInstantiate:1:801", "cudaGraphInstantiate:1:2");
  CAPTURE(plan);
  const fourfold::harness::FailingDevice failing(plan);
  const RunTrace refused = tiny.train(1, 5, "refused", {"train.cuda_graphs=true"});
  CHECK(refused.losses == without.losses);
  CHECK(refused.weights == without.weights);
  CHECK(refused.result.graphs.launches == 0);
  const std::string text = log.text();
  const std::size_t told = text.find("cannot be recorded as CUDA graphs");
  REQUIRE(told != std::string::npos);
  CHECK(text.find("cudaGraphInstantiate") != std::string::npos);
  CHECK(text.find("cannot be recorded as CUDA graphs", told + 1) == std::string::npos);
}

TEST_CASE("each rank whose micro-batches cannot be recorded says so", "[cuda_graphs]") {
  const TinyRun tiny("gpt2");
  const fourfold::harness::CapturedLog log;
  const fourfold::harness::FailingDevice failing("cudaGraphInstantiate:1:801");
  tiny.train(2, 5, "refused", {"train.cuda_graphs=true"});
  const std::string text = log.text();
  CHECK(text.find("[rank 0] micro-batches cannot be recorded") != std::string::npos);
  CHECK(text.find("[rank 1] micro-batches cannot be recorded") != std::string::npos);
}
