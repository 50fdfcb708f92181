// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "scratch_folder.hpp"

#include <fourfold/io/atomic_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cerrno>
#include <optional>
#include <string>

using namespace fourfold;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a full disk is told from other reasons not to write", "[no_room]") {
  const harness::ScratchFolder folder;
  CHECK_THROWS_AS(io::cannot_write(folder / "file", "write", ENOSPC), io::NoRoom);
  CHECK_THROWS_AS(io::cannot_write(folder / "file", "write", EDQUOT), io::NoRoom);
  try {
    io::cannot_write(folder / "file", "write", EIO);
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::cannot_write);
    CHECK(dynamic_cast<const io::NoRoom*>(&error) == nullptr);
  }
}

TEST_CASE("a file system without an inode is told from one without a byte", "[no_room]") {
  const std::string full = "3.0 KiB free there, but no inode: no more files can be made";
  CHECK(io::room_text(ENOSPC, 3072, 0) == full);
  CHECK(io::room_text(ENOSPC, 3072, 1) == "3.0 KiB free there");
  CHECK(io::room_text(ENOSPC, 0, std::nullopt) == "0 B free there");  // which counts none: Btrfs
  CHECK(io::room_text(EDQUOT, 3072, 0) == "3.0 KiB free there");
  CHECK(io::room_text(EIO, std::nullopt, 0) == "unknown space free there");
  const harness::ScratchFolder folder;
  CHECK_THAT(io::write_failure(folder / "a/b/c", "open", ENOSPC),
             ContainsSubstring("open: No space left on device; ") &&
                 ContainsSubstring(" free there") && !ContainsSubstring("unknown"));
  CHECK(io::write_failure(folder / "a/b/c", "open", ENOENT) == "open: No such file or directory");
}
