// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/io/digest.hpp>
#include <fourfold/io/own_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/stat.h>

#include <array>
#include <string>

namespace fs = std::filesystem;
using namespace fourfold;
using Catch::Matchers::ContainsSubstring;
using harness::ScratchFolder;

namespace {

constexpr io::OwnFile own{"made here", "fourfold thing"};

std::string refusal(const fs::path& path) {
  try {
    io::refuse_foreign_file(path, own);
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::config);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("what a program has made it may replace, and what holds nothing", "[own_file]") {
  const ScratchFolder scratch;
  CHECK(refusal(scratch / "missing").empty());
  CHECK(refusal(scratch.write("empty", "")).empty());
  CHECK(refusal(scratch.write("ours", "made here -->")).empty());
  fs::create_symlink("ours", scratch / "link");
  CHECK(refusal(scratch / "link").empty());
  CHECK(io::is_own_file(scratch / "link", own));
  CHECK_FALSE(io::is_own_file(scratch / "empty", own));
}

TEST_CASE("what others have made stays", "[own_file]") {
  const ScratchFolder scratch;
  const auto theirs = scratch.write("theirs", "a thesis");
  CHECK(refusal(theirs).find("theirs: is there already, and not made by `fourfold thing`") !=
        std::string::npos);
  fs::create_symlink("theirs", scratch / "link");
  CHECK_FALSE(refusal(scratch / "link").empty());
  fs::create_symlink("nowhere", scratch / "dangling");
  CHECK_FALSE(refusal(scratch / "dangling").empty());
  fs::create_directory(scratch / "folder");
  CHECK_FALSE(refusal(scratch / "folder").empty());
  REQUIRE(::mkfifo((scratch / "pipe").c_str(), 0600) == 0);
  CHECK_FALSE(refusal(scratch / "pipe").empty());  // and it does not wait for a writer
  CHECK_FALSE(refusal(scratch.write("late", std::string(5000, ' ') + "made here")).empty());
}

TEST_CASE("under a name of ours a link is others', wherever it leads", "[own_file]") {
  const ScratchFolder scratch;
  const auto is_refused = [&](const char* name, Links links) {
    try {
      io::refuse_foreign_file(scratch / name, own, links);
      return false;
    } catch (const UserError&) {
      return true;
    }
  };
  scratch.write("ours", "made here; and then some");
  scratch.write("theirs", "a thesis");
  fs::create_symlink("ours", scratch / "link");
  CHECK_FALSE(is_refused("link", Links::follow));
  CHECK(is_refused("link", Links::refuse));
  CHECK_FALSE(is_refused("ours", Links::refuse));
  CHECK(is_refused("theirs", Links::refuse));
  CHECK_FALSE(is_refused("missing", Links::refuse));
}

TEST_CASE("an output that is an input is known by any name", "[own_file]") {
  const ScratchFolder scratch;
  const std::array<fs::path, 1> inputs{scratch.write("in", "x")};
  fs::create_hard_link(inputs[0], scratch / "hard");
  fs::create_symlink("in", scratch / "soft");
  for (const fs::path& output : {inputs[0], scratch / "hard", scratch / "soft",
                                 scratch / "." / ".." / scratch.path().filename() / "in"}) {
    CAPTURE(output);
    CHECK_THROWS_AS(io::refuse_input_as_output(output, inputs), UserError);
  }
  io::refuse_input_as_output(scratch / "other", inputs);
  io::refuse_input_as_output(scratch.write("same bytes", "x"), inputs);
}

TEST_CASE("what people have changed is theirs", "[own_file]") {
  const ScratchFolder scratch;
  constexpr io::OwnFile table{
      .mark = "# made here", .maker = "fourfold thing", .is_unchanged = io::sum_holds};
  const std::string text = io::with_sum("# made here\nF0,B0\n");
  CHECK(io::sum_holds(text));
  CHECK_NOTHROW(io::refuse_foreign_file(scratch.write("whole", text), table));
  std::string other_cell = text;
  other_cell[text.find("F0")] = 'B';
  std::string without_sum = text.substr(0, text.rfind('#'));
  for (const std::string& edited : {other_cell, without_sum, text + "# a note\n", text + "\n",
                                    text.substr(0, text.size() - 1), io::with_sum(text) + "#"}) {
    CHECK_FALSE(io::sum_holds(edited));
    CHECK_THROWS_WITH(io::refuse_foreign_file(scratch.write("edited", edited), table),
                      ContainsSubstring("edited: was changed since `fourfold thing` made it"));
  }
  CHECK(io::sum_holds(io::with_sum("")));
  CHECK_FALSE(io::sum_holds(""));
}

TEST_CASE("a mark counts only where its writer puts it", "[own_file]") {
  const ScratchFolder scratch;
  const io::OwnFile script{"# Made by us", "us", "#!/bin/bash\n"};
  const io::OwnFile binary{
      .mark = "ours", .maker = "us", .opening = "\x89HDF", .is_anywhere = true};
  CHECK(io::begins_as("#!/bin/bash\n# Made by us, today", script));
  CHECK_FALSE(io::begins_as("# Made by us", script));
  CHECK_FALSE(io::begins_as("#!/bin/bash\nset -e\n# Made by us", script));
  CHECK(io::begins_as(std::string("\x89HDF\0\1 it is ours", 17), binary));
  CHECK_FALSE(io::begins_as("it is ours", binary));
  CHECK_FALSE(io::begins_as("\x89HDF and theirs", binary));
  CHECK_FALSE(io::begins_as("", script));
  const auto notes = scratch.write("notes", "the file begins with \"#!/bin/bash\n# Made by us\"");
  CHECK_THROWS_AS(io::refuse_foreign_file(notes, script), UserError);
}
