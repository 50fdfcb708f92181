// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/io/mapped_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <scratch_folder.hpp>

#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

using fourfold::harness::ScratchFolder;
using fourfold::io::MappedFile;

namespace {

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

TEST_CASE("a mapped file shows the file's bytes, also after a move", "[mapped_file]") {
  const ScratchFolder scratch;
  const std::string text(70'001, 'y');
  scratch.write("file", text);
  MappedFile file(scratch.path() / "file");
  CHECK(text_of(file) == text);
  file.advise(MappedFile::Access::random);
  file.will_need(69'000, std::numeric_limits<std::size_t>::max());
  file.will_need(80'000, 1);
  MappedFile moved(std::move(file));
  MappedFile assigned;
  assigned = std::move(moved);
  CHECK(text_of(assigned) == text);
  CHECK(assigned.path() == scratch.path() / "file");
}

TEST_CASE("an empty file is an empty span", "[mapped_file]") {
  const ScratchFolder scratch;
  scratch.write("empty", "");
  const MappedFile file(scratch.path() / "empty");
  CHECK(file.bytes().empty());
  file.advise(MappedFile::Access::sequential);
  file.will_need(0, 10);
}

TEST_CASE("what is no file is an error that names it", "[mapped_file]") {
  const ScratchFolder scratch;
  for (const std::string name : {"missing", "."}) {
    try {
      const MappedFile file(scratch.path() / name);
      FAIL("no error for " << name);
    } catch (const fourfold::UserError& error) {
      CHECK(error.code() == fourfold::ExitCode::config);
      CHECK(std::string(error.what()).find(name) != std::string::npos);
    }
  }
}
