// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/line_reader.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::ExitCode;
using fourfold::UserError;
using fourfold::harness::ScratchFolder;
using fourfold::io::LineReader;

namespace {

std::vector<std::string> rest_of(LineReader& reader) {
  std::vector<std::string> lines;
  for (std::string_view line; reader.next(line);) {
    lines.emplace_back(line);
  }
  return lines;
}

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  LineReader reader(file);
  return rest_of(reader);
}

}  // namespace

TEST_CASE("lines come one by one, with and without a last end", "[line_reader]") {
  const ScratchFolder folder;
  using Lines = std::vector<std::string>;
  CHECK(lines_of(folder.write("a", "")).empty());
  CHECK(lines_of(folder.write("a", "\n")) == Lines{""});
  CHECK(lines_of(folder.write("a", "one\n\ntwo\n")) == Lines{"one", "", "two"});
  CHECK(lines_of(folder.write("a", "one\ntwo")) == Lines{"one", "two"});
  LineReader reader(folder.write("a", "one\ntwo\n"));
  CHECK(rest_of(reader) == Lines{"one", "two"});
  CHECK(rest_of(reader).empty());
  reader.rewind();
  CHECK(rest_of(reader) == Lines{"one", "two"});
}

TEST_CASE("lines of every length come whole, across all borders of the buffer", "[line_reader]") {
  const ScratchFolder folder;
  std::string text;
  std::vector<std::string> expected;
  for (std::size_t i = 0; i < 3000; ++i) {
    const std::size_t bytes = i % 500 == 499 ? 1'500'000 + i : i * i % 3001;
    expected.emplace_back(bytes, static_cast<char>('a' + i % 26));
    text += expected.back() + "\n";
  }
  LineReader reader(folder.write("a", text));
  CHECK(rest_of(reader) == expected);
  reader.rewind();
  CHECK(rest_of(reader) == expected);
  CHECK(reader.passed_over() == 0);
}

TEST_CASE("lines that are too long are passed over and counted", "[line_reader]") {
  const ScratchFolder folder;
  const std::string longest(5'000'000, 'x');
  for (const char* const end : {"", "\n"}) {
    LineReader reader(folder.write("a", "one\n" + longest + "y\ntwo\n" + longest + "\n" + longest +
                                            longest + end),
                      longest.size());
    CHECK(rest_of(reader) == std::vector<std::string>{"one", "two", longest});
    CHECK(reader.passed_over() == 2);
  }
}

TEST_CASE("what is appended meanwhile is not read, and what is cut off ends it", "[line_reader]") {
  const ScratchFolder folder;
  LineReader reader(folder.write("a", "one\n"));
  std::ofstream(folder / "a", std::ios::app) << "two\n";
  CHECK(rest_of(reader) == std::vector<std::string>{"one"});
  LineReader cut(folder.write("b", "one\ntwo\n"));
  std::filesystem::resize_file(folder / "b", 5);
  CHECK(rest_of(cut) == std::vector<std::string>{"one", "t"});
}

TEST_CASE("what is no regular file has no lines, and nothing waits", "[line_reader]") {
  const ScratchFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::filesystem::create_symlink(folder.write("a", "one\n"), folder / "link");
  std::filesystem::create_directory(folder / "folder");
  const auto refusal = [&](const std::filesystem::path& path) -> std::string {
    try {
      const LineReader reader(path);
    } catch (const UserError& error) {
      CHECK(error.code() == ExitCode::config);
      return error.what();
    }
    return "none";
  };
  CHECK_THAT(refusal(folder / "pipe"), ContainsSubstring("it is a pipe"));
  CHECK_THAT(refusal(folder / "link"), ContainsSubstring("it is a symbolic link"));
  CHECK_THAT(refusal(folder / "folder"), ContainsSubstring("it is a folder"));
  CHECK_THAT(refusal("/dev/zero"), ContainsSubstring("it is a device"));
  CHECK_THAT(refusal(folder / "none"), ContainsSubstring("No such file"));
}
