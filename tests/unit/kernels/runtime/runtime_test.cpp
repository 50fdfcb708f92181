// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/scratch.hpp"

#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/matmul_tuning.hpp>
#include <fourfold/kernels/runtime.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <thread>

TEST_CASE("the kernels say what they run on", "[runtime]") {
  const std::string text = fourfold::kernels::description();
  CHECK_THAT(text,
             Catch::Matchers::Matches(
                 R"((.+, )?Kokkos \d+\.\d+\.\d+ \(\w+\), )"
                 R"((oneDNN \d+\.\d+\.\d+ \(.+\), \d+ threads?|cuBLASLt \d+\.\d+\.\d+, .+))"));
}

TEST_CASE(
    "recorded work is out of date when scratch of its thread grows, or ways of products change",
    "[runtime]") {
  using fourfold::kernels::recorded_work_version;
  const fourfold::device::Stream stream;
  fourfold::kernels::scratch(100, stream);
  const std::uint64_t before = recorded_work_version();
  fourfold::kernels::scratch(100, stream);
  CHECK(recorded_work_version() == before);
  std::thread growing([&] {
    const std::uint64_t its = recorded_work_version();
    fourfold::kernels::scratch(200, stream);
    CHECK(recorded_work_version() != its);
  });
  growing.join();
  CHECK(recorded_work_version() == before);
  std::thread choosing([] { fourfold::kernels::set_matmul_tuning({}, false); });
  choosing.join();
  const std::uint64_t chosen = recorded_work_version();
  CHECK(chosen != before);
  fourfold::kernels::scratch(fourfold::kernels::scratch_bytes() + 1, stream);
  CHECK(recorded_work_version() != chosen);
}
