// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/event_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <array>
#include <string>

using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;
using fourfold::io::EventFile;
using fourfold::io::EventScalar;

namespace {

std::string from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

}  // namespace

/// tensorboard 2.21.0: EventFileWriter's RecordWriter, the same events. First the version.
constexpr const char* version_record =
    "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9";

TEST_CASE("an event file holds the bytes that TensorBoard's own writer makes") {
  const ScratchFolder scratch;
  EventFile file(scratch / "events", 0, 1700000000.25);
  const std::array scalars{EventScalar{"train/loss", 2.5F}, EventScalar{"lr", 6e-4F}};
  file.add(300, 1700000001.5, scalars);
  CHECK(
      read_bytes(file.path()) ==
      from_hex(version_record) +
          from_hex("0d000000000000003c37b8340900001040fc54d9413a0208018c8e54cd") +
          from_hex("2c00000000000000f4aecc450900006040fc54d94110ac022a1e0a110a0a747261696e2f6c6f73"
                   "7315000020400a090a026c721552491d3a8275c33c"));
  CHECK(file.path().filename().string().starts_with("events.out.tfevents.1700000000."));
}

TEST_CASE("a run that goes on voids later events of older files, and never overwrites a file") {
  const ScratchFolder scratch;
  const EventFile first(scratch.path(), 0, 1700000000);
  const EventFile second(scratch.path(), 7, 1700000000);
  CHECK(first.path() != second.path());
  CHECK(read_bytes(second.path()) ==
        from_hex("1800000000000000a37f4b220900000040fc54d9411a0d627261696e2e4576656e743a32eced8f9d"
                 "0f000000000000006d532b090900000040fc54d94110073a0208013c4f4b07"));
}

TEST_CASE("a later start's file sorts after the others, whatever its clock says") {
  const ScratchFolder scratch;
  scratch.write("events.out.tfevents.1700000500.node9.12.0", "of a host whose clock is ahead");
  scratch.write("events.out.tfevents.99999999999999.x", "of nobody");
  scratch.write("events.out.tfevents.soon", "of nobody");
  std::string before = "events.out.tfevents.1700000500.node9.12.0";
  for (const double clock_s : {1700000000.0, 1700000000.0, 1700000502.5, 1690000000.0, 1.8e9}) {
    const EventFile file(scratch.path(), 0, clock_s);
    const std::string name = file.path().filename().string();
    CHECK(before < name);
    before = name;
  }
  CHECK(before.starts_with("events.out.tfevents.1800000000."));
}

TEST_CASE("a folder that cannot be written is an error with its name") {
  const ScratchFolder scratch;
  scratch.write("file", "");
  CHECK_THROWS_MATCHES(EventFile(scratch / "file", 0, 0), fourfold::UserError,
                       Catch::Matchers::MessageMatches(
                           Catch::Matchers::ContainsSubstring("/file: TensorBoard events cannot")));
}
