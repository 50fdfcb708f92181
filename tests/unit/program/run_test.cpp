// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/program/run.hpp>

#include <catch2/catch_test_macros.hpp>

#include <new>
#include <optional>
#include <stdexcept>

using fourfold::ExitCode;
using fourfold::program::run;

TEST_CASE("what a body returns or throws becomes the exit code", "[run]") {
  CHECK(run("test", [] { return ExitCode::finished; }) == 0);
  CHECK(run("test", [] { return ExitCode::stopped_saved; }) == 75);
  CHECK(run("test",
            []() -> ExitCode { throw fourfold::UserError(ExitCode::data_corrupt, "bad"); }) == 65);
  CHECK(run("test", []() -> ExitCode {
          throw fourfold::SystemError(ExitCode::cannot_write, "full");
        }) == 73);
  CHECK(run("test",
            []() -> ExitCode { throw fourfold::ContractViolation("invariant", "false"); }) == 70);
  CHECK(run("test", []() -> ExitCode { throw std::runtime_error("surprise"); }) == 70);
  CHECK(run("test", []() -> ExitCode { throw std::bad_alloc(); }) == 78);
}

TEST_CASE("only a failure is handed to on_failure, with its code", "[run]") {
  std::optional<ExitCode> seen;
  const auto note = [&](ExitCode code) { seen = code; };
  run(
      "test", [] { return ExitCode::finished; }, note);
  CHECK_FALSE(seen.has_value());
  run(
      "test", []() -> ExitCode { throw fourfold::UserError(ExitCode::config, "bad"); }, note);
  CHECK(seen == ExitCode::config);
}
