// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/program/checkpoint_option.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

// With the program beside it: tests/integration/model_conversion_program.bash.
TEST_CASE("without the program that opens checkpoints it is said what to do", "[program]") {
  CHECK_THROWS_WITH(
      fourfold::program::run_file_in_checkpoint("a/step-000000001"),
      Catch::Matchers::ContainsSubstring("checkpoint.resume = a/step-000000001: ") &&
          Catch::Matchers::ContainsSubstring("no fourfold-ckpt beside this program") &&
          Catch::Matchers::ContainsSubstring("write [model] into the run file"));
}
