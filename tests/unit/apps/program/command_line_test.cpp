// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "captured_stream.hpp"

#include <fourfold/program/checkpoint_option.hpp>
#include <fourfold/program/command_line.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
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

namespace {

/// What a wrong command line is told, without the pointer to --help.
std::string said(CLI::App& command, std::vector<const char*> words,
                 const fourfold::program::KeySearch& keys = {}) {
  words.insert(words.begin(), "test");
  CapturedStream error(stderr);
  const auto code =
      fourfold::program::parse(command, static_cast<int>(words.size()), words.data(), keys);
  const std::string text = error.text();
  CHECK(code == ExitCode::usage);
  const std::string pointer = "\nRun with --help for more information.\n";
  CHECK(text.ends_with(pointer));
  return text.substr(0, text.size() - std::min(pointer.size(), text.size()));
}

/// The keys of a small run file.
std::vector<std::string> keys_called(const std::string& name) {
  std::vector<std::string> keys;
  for (const std::string key : {"train.steps", "model.layers", "checkpoint.dir", "log.dir"}) {
    if (key.ends_with("." + name)) {
      keys.push_back(key);
    }
  }
  return keys;
}

}  // namespace

TEST_CASE("what is unknown is named, not what is missing because of it", "[command_line]") {
  CLI::App command{"A program.", "fourfold test"};
  command.require_subcommand(1);
  std::string path;
  bool deep = false;
  CLI::App* const info = command.add_subcommand("info", "Tells.");
  info->add_option("PATH", path)->required();
  info->add_flag("--deep", deep);
  CHECK(said(command, {"inof"}) ==
        "fourfold test: error: there is no verb 'inof'; did you mean 'info'?");
  CHECK(said(command, {"info", "--x\x1b[2J"}) ==
        "fourfold test info: error: unknown option '--x\\u001b[2J'");
  CHECK(said(command, {"make"}) == "fourfold test: error: there is no verb 'make'; there are info");
  CHECK(said(command, {"inof", "--deeep", "x"}) ==
        "fourfold test: error: there is no verb 'inof'; did you mean 'info'?");
  CHECK(said(command, {"info", "--bogus"}) ==
        "fourfold test info: error: unknown option '--bogus'");
  CHECK(said(command, {"info", "--dee", "x"}) ==
        "fourfold test info: error: unknown option '--dee'; did you mean '--deep'?");
  CHECK(said(command, {"info", "x", "y", "z"}) ==
        "fourfold test info: error: 'y' is one argument too many\n  'z' is one argument too many");
  CHECK_THAT(said(command, {"info"}), ContainsSubstring("info: error: PATH is required"));
  CHECK_THAT(said(command, {}), ContainsSubstring("test: error: A subcommand is required"));
}

TEST_CASE("unknown options are told in the order typed, with what was meant", "[command_line]") {
  CLI::App command{"A program.", "fourfold test"};
  std::string run_file;
  double temperature = 1;
  command.add_option("RUN_FILE", run_file);
  command.add_option("--temperature", temperature);
  command.add_option("--top-k", temperature);
  CHECK(said(command, {"run.toml", "--steps", "100"}, keys_called) ==
        "fourfold test: error: unknown option '--steps'; did you mean '--set train.steps=100'?");
  CHECK(said(command, {"--steps=7", "run.toml"}, keys_called) ==
        "fourfold test: error: unknown option '--steps'; did you mean '--set train.steps=7'?");
  CHECK(said(command, {"run.toml", "--dir", "--layers", "2"}, keys_called) ==
        "fourfold test: error: unknown option '--dir'; did you mean '--set checkpoint.dir=VALUE' "
        "or '--set log.dir=VALUE'?\n  unknown option '--layers'; did you mean '--set "
        "model.layers=2'?");
  CHECK(said(command, {"run.toml", "--temp", "0"}, keys_called) ==
        "fourfold test: error: unknown option '--temp'; did you mean '--temperature'?");
  CHECK(said(command, {"--topk", "5"}) ==
        "fourfold test: error: unknown option '--topk'; did you mean '--top-k'?");
  CHECK(said(command, {"run.toml", "--steps", "100"}) ==
        "fourfold test: error: unknown option '--steps'");
  CHECK(said(command, {"run.toml", "-x"}) == "fourfold test: error: unknown option '-x'");
}

TEST_CASE("a word after --help is a verb", "[command_line]") {
  CLI::App command{"A program.", "fourfold test"};
  std::string path;
  command.add_subcommand("export", "Writes.")->add_option("PATH", path)->required();
  command.add_subcommand("import", "Reads.");
  const char* page[] = {"test", "--help", "export"};
  CapturedStream out(stdout);
  CHECK(fourfold::program::parse(command, 3, page) == ExitCode::finished);
  CHECK_THAT(out.text(), ContainsSubstring("PATH TEXT REQUIRED"));
  CHECK(said(command, {"--help", "exprot"}) ==
        "fourfold test: error: there is no verb 'exprot'; did you mean 'export'?");
  CHECK(said(command, {"help", "exprot"}) ==
        "fourfold test: error: there is no verb 'exprot'; did you mean 'export'?");
  CHECK(said(command, {"--help", "export", "hf"}) ==
        "fourfold test export: error: there is no verb 'hf'");
  CLI::App flat{"A program.", "fourfold flat"};
  flat.add_option("PATH", path);
  CHECK(said(flat, {"--help", "optim"}) == "fourfold flat: error: there is no verb 'optim'");
}

TEST_CASE("whole numbers have bounds that are said in words", "[command_line]") {
  CLI::App command{"A program.", "fourfold test"};
  std::int64_t count = 0;
  std::int64_t share = 0;
  command.add_option("--count", count)->check(fourfold::program::whole_number(1));
  command.add_option("--share", share)->check(fourfold::program::whole_number(0, 9));
  for (const char* wrong : {"0", "-3", "1.5", "many", "", "nan"}) {
    CAPTURE(wrong);
    CHECK(said(command, {"--count", wrong}) == std::string("fourfold test: error: --count: ") +
                                                   wrong + " is no whole number of at least 1");
  }
  CHECK(said(command, {"--count", "2147483648"}) ==
        "fourfold test: error: --count: 2147483648 is more than 2147483647");
  CHECK(said(command, {"--share", "-1"}) ==
        "fourfold test: error: --share: -1 is no whole number from 0 to 9");
  CHECK(said(command, {"--share", "10"}) == "fourfold test: error: --share: 10 is more than 9");
  const char* good[] = {"test", "--count", "2147483647", "--share", "0"};
  CHECK_FALSE(fourfold::program::parse(command, 5, good).has_value());
  CHECK(count == 2147483647);
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

TEST_CASE("a checkpoint is the first argument, or has its option", "[command_line]") {
  const std::vector<std::vector<const char*>> lines = {{"test", "runs/a", "out"},
                                                       {"test", "--checkpoint", "runs/a", "out"}};
  for (const std::vector<const char*>& line : lines) {
    CLI::App command{"A program.", "fourfold test"};
    std::string checkpoint;
    std::string to;
    fourfold::program::add_checkpoint_option(command, checkpoint);
    command.add_option("TO", to)->required();
    CHECK_FALSE(fourfold::program::parse(command, static_cast<int>(line.size()), line.data()));
    CHECK(checkpoint == "runs/a");
    CHECK(to == "out");
  }
}

TEST_CASE("an option that has a position may stand after other arguments", "[command_line]") {
  std::string checkpoint;
  std::string to;
  std::string mesh;
  const auto parsed = [&](std::vector<const char*> words) {
    CLI::App command{"A program.", "fourfold test"};
    CLI::App* const verb = command.add_subcommand("reshard", "Cuts.");
    fourfold::program::add_checkpoint_option(*verb, checkpoint);
    verb->add_option("TO", to)->required();
    verb->add_option("--to", mesh)->required();
    words.insert(words.begin(), {"test", "reshard"});
    checkpoint.clear();
    to.clear();
    return !fourfold::program::parse(command, static_cast<int>(words.size()), words.data());
  };
  for (const std::vector<const char*>& words :
       std::vector<std::vector<const char*>>{{"from", "there", "--to", "dp=2"},
                                             {"--checkpoint", "from", "there", "--to", "dp=2"},
                                             {"there", "--checkpoint", "from", "--to", "dp=2"},
                                             {"there", "--to", "dp=2", "--checkpoint", "from"},
                                             {"--to", "dp=2", "there", "--checkpoint=from"},
                                             {"--to=dp=2", "--checkpoint=from", "--", "there"}}) {
    REQUIRE(parsed(words));
    CHECK(checkpoint == "from");
    CHECK(to == "there");
    CHECK(mesh == "dp=2");
  }
  REQUIRE(parsed({"--to", "dp=2", "--", "--checkpoint", "there"}));  // names, both of them
  CHECK(checkpoint == "--checkpoint");
  CapturedStream error(stderr);
  CHECK_FALSE(parsed({"there", "--to", "dp=2", "--checkpoint"}));
  CHECK_FALSE(parsed({"from", "there", "more", "--to", "dp=2", "--checkpoint", "other"}));
}

TEST_CASE("several checkpoints keep the order in which they are typed", "[command_line]") {
  std::vector<std::string> checkpoints;
  bool deep = false;
  const auto parsed = [&](std::vector<const char*> words) {
    CLI::App command{"A program.", "fourfold test"};
    fourfold::program::add_checkpoint_option(command, checkpoints);
    command.add_flag("--deep", deep);
    words.insert(words.begin(), "test");
    checkpoints.clear();
    return !fourfold::program::parse(command, static_cast<int>(words.size()), words.data());
  };
  const std::vector<std::string> two{"a", "b"};
  REQUIRE(parsed({"--checkpoint", "a", "--checkpoint", "b"}));
  CHECK(checkpoints == two);
  REQUIRE(parsed({"--deep", "--checkpoint", "a", "b"}));
  CHECK(checkpoints == two);
  REQUIRE(parsed({"a", "b", "--deep"}));
  CHECK(checkpoints == two);
}

TEST_CASE("a number above a bound is not the bound", "[command_line]") {
  const auto told = [](const char* number) {
    return fourfold::program::number_above(0, 10)(std::string(number));
  };
  CHECK(told("1e-9").empty());
  CHECK(told("10").empty());
  for (const std::string number : {"0", "-1", "nan", "10.5", "x", ""}) {
    CHECK(told(number.c_str()) == number + " is no number above 0 and at most 10");
  }
}
