// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/kernels/runtime.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

TEST_CASE("the kernels say what they run on", "[runtime]") {
  const std::string text = fourfold::kernels::description();
  CHECK_THAT(text,
             Catch::Matchers::Matches(
                 R"(Kokkos \d+\.\d+\.\d+ \(\w+\), oneDNN \d+\.\d+\.\d+ \(.+\), \d+ threads?)"));
}
