// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"

#include <fourfold/io/no_room.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cerrno>

using namespace fourfold;

TEST_CASE("a full disk is told from other reasons not to write", "[no_room]") {
  io::OutputFile full = io::OutputFile::open("/dev/full");
  const std::array<std::byte, 1> byte{};
  CHECK_THROWS_AS(full.write_at(0, byte), io::NoRoom);
  CHECK_THROWS_AS(io::cannot_write("/dev/full", "write", EDQUOT), io::NoRoom);
  try {
    io::cannot_write("/dev/full", "write", EIO);
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::cannot_write);
    CHECK(dynamic_cast<const io::NoRoom*>(&error) == nullptr);
  }
}
