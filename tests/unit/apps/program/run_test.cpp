// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/program/run.hpp>

#include <catch2/catch_test_macros.hpp>

#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

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
  const auto failing = [](std::errc error) {
    return [=]() -> ExitCode { throw std::system_error(std::make_error_code(error)); };
  };
  CHECK(run("test", failing(std::errc::no_space_on_device)) == 73);
  // What std::thread throws where no further one can be started.
  CHECK(run("test", failing(std::errc::resource_unavailable_try_again)) == 78);
}

TEST_CASE("a program hears of its failure, whatever was thrown", "[run]") {
  std::vector<std::pair<ExitCode, std::string>> heard;
  const auto note = [&](ExitCode code, const std::string& message) {
    heard.emplace_back(code, message);
  };
  run(
      "test", [] { return ExitCode::finished; }, note);
  CHECK(heard.empty());
  run(
      "test", []() -> ExitCode { throw fourfold::UserError(ExitCode::config, "bad"); }, note);
  run(
      "test", []() -> ExitCode { throw std::bad_alloc(); }, note);
  run(
      "test", []() -> ExitCode { throw std::runtime_error("surprise"); }, note);
  REQUIRE(heard.size() == 3);
  CHECK(heard[0] == std::pair(ExitCode::config, std::string("bad")));
  CHECK(heard[1].first == ExitCode::config);
  CHECK(heard[1].second.find("out of memory") != std::string::npos);
  CHECK(heard[2].first == ExitCode::internal);
}

TEST_CASE("a failure while a failure is noted does not hide the first", "[run]") {
  const auto fail_too = [](ExitCode, const std::string&) { throw std::runtime_error("also"); };
  CHECK(run(
            "test", []() -> ExitCode { throw fourfold::UserError(ExitCode::data_corrupt, "bad"); },
            fail_too) == 65);
}

namespace {
std::optional<ExitCode> ended_with;
void note_end(ExitCode code) noexcept {
  ended_with = code;
}
}  // namespace

TEST_CASE("a failure ends all ranks with its code, and only a failure does", "[run]") {
  fourfold::set_rank_identity({0, 4, "here", &note_end});
  run("test", [] { return ExitCode::finished; });
  CHECK_FALSE(ended_with.has_value());
  run("test", []() -> ExitCode { throw fourfold::UserError(ExitCode::config, "bad"); });
  CHECK(ended_with == ExitCode::config);
  fourfold::set_rank_identity({});
}

TEST_CASE("where memory is short the advice is the program's own", "[run]") {
  const auto told = [] {
    std::string message;
    run(
        "test", []() -> ExitCode { throw std::bad_alloc(); },
        [&](ExitCode, const std::string& why) { message = why; });
    return message;
  };
  CHECK(told() ==
        "out of memory (this host has no more); free some there, or run it where there is more");
  fourfold::set_remedies({.host_memory = "use a smaller --memory"});
  CHECK(told() == "out of memory (this host has no more); use a smaller --memory");
  fourfold::set_remedies({});
}
