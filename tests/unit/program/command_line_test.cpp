// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/program/command_line.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::ExitCode;

TEST_CASE("parsing goes on, or ends with the right code", "[command_line]") {
  CLI::App command{"A program.", "fourfold test"};
  int steps = 0;
  command.add_option("--steps", steps);
  const char* good[] = {"test", "--steps", "7"};
  CHECK_FALSE(fourfold::program::parse(command, 3, good).has_value());
  CHECK(steps == 7);
  const char* help[] = {"test", "--help"};
  CHECK(fourfold::program::parse(command, 2, help) == ExitCode::finished);
  const char* unknown[] = {"test", "--stpes", "7"};
  CHECK(fourfold::program::parse(command, 3, unknown) == ExitCode::usage);
  const char* wrong[] = {"test", "--steps", "many"};
  CHECK(fourfold::program::parse(command, 3, wrong) == ExitCode::usage);
}

TEST_CASE("what is unknown is named, not what is missing because of it", "[command_line]") {
  CLI::App command{"A program.", "fourfold test"};
  command.require_subcommand(1);
  std::string path;
  command.add_subcommand("info", "Tells.")->add_option("PATH", path)->required();
  const auto said = [&](std::vector<const char*> words) {
    words.insert(words.begin(), "test");
    std::ostringstream text;
    std::streambuf* const before = std::cerr.rdbuf(text.rdbuf());
    const auto code =
        fourfold::program::parse(command, static_cast<int>(words.size()), words.data());
    std::cerr.rdbuf(before);
    CHECK(code == ExitCode::usage);
    return text.str();
  };
  CHECK_THAT(said({"inof"}), ContainsSubstring("not expected: inof"));
  CHECK_THAT(said({"info", "--bogus"}), ContainsSubstring("not expected: --bogus"));
  CHECK_THAT(said({"info"}), ContainsSubstring("PATH is required"));
  CHECK_THAT(said({}), ContainsSubstring("subcommand is required"));
}

TEST_CASE("numbers have bounds, and nan is outside them", "[command_line]") {
  CLI::App command{"A program.", "fourfold test"};
  double share = 0;
  command.add_option("--share", share)->check(fourfold::program::number_between(0, 0.99));
  const auto end_with = [&](const char* text) {
    const char* line[] = {"test", "--share", text};
    return fourfold::program::parse(command, 3, line);
  };
  CHECK_FALSE(end_with("0").has_value());
  CHECK_FALSE(end_with("0.99").has_value());
  for (const char* wrong : {"1", "-0.1", "nan", "-nan", "inf", "half"}) {
    CAPTURE(wrong);
    CHECK(end_with(wrong) == ExitCode::usage);
  }
}

TEST_CASE("the table of exit codes is sorted and names each code once", "[command_line]") {
  const std::string table =
      fourfold::program::exit_codes_table({ExitCode::config, ExitCode::usage});
  CHECK(table.find("  0 ") == 0);
  CHECK(table.find("\n  64 ") < table.find("\n  70 "));
  CHECK(table.find("\n  70 ") < table.find("\n  78 "));
  CHECK(table.find("\n  64 ") == table.rfind("\n  64 "));
}
