// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/regular_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

using Catch::Matchers::ContainsSubstring;
using fourfold::Links;
using fourfold::open_regular_file;
using fourfold::read_regular_file;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;

namespace {

/// A folder with one entry of each kind.
struct Entries : ScratchFolder {
  Entries() {
    write("file", "text");
    std::filesystem::create_directory(*this / "folder");
    REQUIRE(::mkfifo((*this / "pipe").c_str(), 0600) == 0);
    const fourfold::FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, (*this / "socket").c_str(), sizeof(address.sun_path) - 1);
    REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
            0);
    std::filesystem::create_symlink("file", *this / "to-file");
    std::filesystem::create_symlink("pipe", *this / "to-pipe");
    std::filesystem::create_symlink("/dev/zero", *this / "to-device");
    std::filesystem::create_symlink("none", *this / "to-none");
    std::filesystem::create_symlink("loop", *this / "loop");
  }
};

}  // namespace

TEST_CASE("only regular files are opened, to read and to write, and nothing waits",
          "[regular_file]") {
  const Entries at;
  for (const int flags : {O_RDONLY, O_WRONLY, O_RDWR | O_CREAT | O_APPEND}) {
    const auto defect = [&](const std::filesystem::path& path, Links links) {
      const fourfold::RegularFile file = open_regular_file(path, flags, links);
      CHECK(static_cast<bool>(file.descriptor) == file.defect.empty());
      return file.defect;
    };
    CAPTURE(flags);
    CHECK(defect(at / "file", Links::refuse).empty());
    CHECK(defect(at / "file", Links::follow).empty());
    CHECK(defect(at / "to-file", Links::follow).empty());
    CHECK(defect(at / "to-file", Links::refuse) ==
          "is not a regular file (it is a symbolic link, which is not followed here)");
    for (const Links links : {Links::follow, Links::refuse}) {
      CHECK(defect(at / "folder", links) == "is not a regular file (it is a folder)");
      CHECK(defect(at / "pipe", links) == "is not a regular file (it is a pipe)");
      CHECK(defect(at / "socket", links) == "is not a regular file (it is a socket)");
      CHECK(defect("/dev/zero", links) == "is not a regular file (it is a device)");
      CHECK_THAT(defect(at / "none/file", links), ContainsSubstring("cannot be opened: No such"));
    }
    CHECK(defect(at / "to-pipe", Links::follow) == "is not a regular file (it is a pipe)");
    CHECK(defect(at / "to-device", Links::follow) == "is not a regular file (it is a device)");
    CHECK_THAT(defect(at / "loop", Links::follow), ContainsSubstring("cannot be opened: Too many"));
    CHECK_THAT(defect(at / "to-none", Links::refuse), ContainsSubstring("it is a symbolic link"));
    CHECK_FALSE(std::filesystem::exists(at / "none"));  // not made through a link
  }
  CHECK(read_bytes(at / "file") == "text");
}

TEST_CASE("the whole of a file is read, if it is not too long", "[regular_file]") {
  const Entries at;
  std::string text = "before";
  CHECK_FALSE(read_regular_file(at / "file", Links::refuse, 4, text));
  CHECK(text == "text");
  CHECK(read_regular_file(at / "file", Links::refuse, 3, text) ==
        "has 4 bytes, more than the 3 it may have");
  CHECK_FALSE(read_regular_file(at / "to-file", Links::follow, 4, text));
  CHECK(read_regular_file(at / "to-file", Links::refuse, 4, text));
  CHECK(read_regular_file(at / "to-device", Links::follow, 4, text) ==
        "is not a regular file (it is a device)");
  CHECK_FALSE(read_regular_file(at.write("empty", ""), Links::refuse, 0, text));
  CHECK(text.empty());
}
