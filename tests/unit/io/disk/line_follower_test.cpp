// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/io/line_follower.hpp>

#include <catch2/catch_test_macros.hpp>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using fourfold::harness::ScratchFolder;
using fourfold::harness::write_bytes;
using fourfold::io::LineFollower;
using fourfold::io::text_if_readable;

namespace {

/// What a reader knows who forgets when told to.
struct Reader {
  explicit Reader(LineFollower follower) : followed(std::move(follower)) {}
  const std::vector<std::string>& look() {
    followed.read_new([&] { known.clear(); },
                      [&](std::string_view line) { known.emplace_back(line); });
    return known;
  }
  LineFollower followed;
  std::vector<std::string> known = {};
};

void append(const std::filesystem::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary | std::ios::app) << text;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("only what is new is read, line by line", "[line_follower]") {
  const ScratchFolder folder;
  Reader reader(LineFollower(folder / "log"));
  CHECK(reader.look().empty());
  append(folder / "log", "one\n\ntw");
  CHECK(reader.look() == Lines{"one", ""});
  append(folder / "log", "o\nthr");
  CHECK(reader.look() == Lines{"one", "", "two"});
  CHECK(reader.look() == Lines{"one", "", "two"});
  append(folder / "log", "ee\n");
  CHECK(reader.look() == Lines{"one", "", "two", "three"});
}

TEST_CASE("a file that is replaced, cut off or removed is another file", "[line_follower]") {
  const ScratchFolder folder;
  Reader reader(LineFollower(folder / "log"));
  append(folder / "log", "one\ntwo\nthr");
  CHECK(reader.look().size() == 2);
  std::filesystem::resize_file(folder / "log", 4);
  CHECK(reader.look() == Lines{"one"});
  write_bytes(folder / "new", "a\nb\nc\nd\ne\nf\n");
  std::filesystem::rename(folder / "new", folder / "log");
  CHECK(reader.look() == Lines{"a", "b", "c", "d", "e", "f"});
  std::filesystem::remove(folder / "log");
  CHECK(reader.look().empty());
  append(folder / "log", "again\n");
  CHECK(reader.look() == Lines{"again"});
}

TEST_CASE("lines may cross the pieces that are read", "[line_follower]") {
  const ScratchFolder folder;
  Lines wanted;
  std::string text;
  for (std::size_t length : {0U, 1U, 300'000U, 1'048'576U, 2'500'000U, 7U}) {
    wanted.emplace_back(length, static_cast<char>('a' + length % 26));
    text += wanted.back() + "\n";
  }
  write_bytes(folder / "log", text);
  Reader reader(LineFollower(folder / "log"));
  CHECK(reader.look() == wanted);
}

TEST_CASE("what is too long is passed over", "[line_follower]") {
  const ScratchFolder folder;
  write_bytes(folder / "log", std::string(50, 'x') + "\nshort\n" + std::string(5, 'y'));
  Reader careful(LineFollower(folder / "log", 1000, 20));
  CHECK(careful.look().back() == "short");
  append(folder / "log", std::string(30, 'y'));
  careful.look();
  append(folder / "log", "yy\nlast\n");
  CHECK(careful.look().back() == "last");
  Reader late(LineFollower(folder / "log", 9));  // of all that, the end: "y\nlast\n"
  CHECK(late.look() == Lines{"last"});
}

TEST_CASE("what is no file is not waited for", "[line_follower]") {
  const ScratchFolder folder;
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  std::filesystem::create_directory(folder / "directory");
  write_bytes(folder / "file", "text\n");
  std::filesystem::create_symlink(folder / "file", folder / "link");
  for (const char* name : {"fifo", "directory", "link", "absent"}) {
    Reader reader(LineFollower(folder / name));
    CHECK(reader.look().empty());
    CHECK_FALSE(text_if_readable(folder / name, 100));
  }
  CHECK(text_if_readable(folder / "file", 5) == "text\n");
  CHECK_FALSE(text_if_readable(folder / "file", 4));
}
