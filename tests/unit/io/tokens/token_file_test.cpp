// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"
#include "source_folder.hpp"
#include "token_bytes_by_hand.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/token_file.hpp>
#include <fourfold/io/token_file_writer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <filesystem>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::Range;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;
using fourfold::io::TokenFile;
using fourfold::io::TokenFileWriter;
using fourfold::io::TokenFormat;
using fourfold::io::TokenType;
using fourfold::test::little_endian;

namespace {

using Tokens = std::vector<std::int32_t>;

const std::string golden = fourfold::harness::golden_folder() + "/megatron/";

Tokens read_all(const TokenFile& file) {
  Tokens tokens(static_cast<std::size_t>(file.tokens()));
  file.read(0, tokens);
  return tokens;
}

}  // namespace

// The files come from tests/golden/make_megatron_golden.py.
TEST_CASE("Megatron files that others wrote are read", "[token_file]") {
  for (const auto& [stem, type] :
       {std::pair{"u16", TokenType::u16}, {"i32", TokenType::i32}, {"i64", TokenType::i64}}) {
    for (const char* suffix : {".bin", ".idx", ""}) {
      const TokenFile file(golden + stem + suffix);
      CHECK(file.format() == TokenFormat::megatron);
      CHECK(file.type() == type);
      CHECK(file.path() == golden + stem + ".bin");
      REQUIRE(file.tokens() == 10);
      REQUIRE(file.documents() == 3);
      file.verify_index();
      CHECK(read_all(file) == Tokens{5, 6, 7, 1, 65535, 40000, 2, 3, 4, 9});
      CHECK(file.document(0) == Range{0, 3});
      CHECK(file.document(1) == Range{3, 3});  // two sequences
      CHECK(file.document(2) == Range{6, 4});
      Tokens middle(3);
      file.read(4, middle);
      CHECK(middle == Tokens{65535, 40000, 2});
      file.read(10, std::span<std::int32_t>());
    }
  }
}

TEST_CASE("a name that is nearly right is told from one that is not there", "[token_file]") {
  const ScratchFolder folder;
  const auto why_not = [&](const std::string& name) -> std::string {
    try {
      TokenFile((folder / name).string());
    } catch (const fourfold::UserError& error) {
      CHECK(error.code() == fourfold::ExitCode::config);
      return error.what();
    }
    return "";
  };
  CHECK_THAT(why_not("book"), ContainsSubstring("book.bin: cannot be opened"));
  folder.write("book_train.bin", read_bytes(golden + "u16.bin"));
  CHECK_THAT(why_not("book"), ContainsSubstring("a " + (folder / "book_train.bin").string()));
  std::filesystem::create_directory(folder / "books");
  CHECK_THAT(why_not("books"), ContainsSubstring("is a folder, not a token file"));
}

TEST_CASE("every integer type of a Megatron file is read", "[token_file]") {
  const ScratchFolder folder;
  const auto check = [&](std::uint8_t code, auto zero) {
    using Stored = decltype(zero);
    folder.write("t.bin", little_endian(std::vector<Stored>{3, 1, 127}));
    folder.write(
        "t.idx",
        fourfold::test::Index{.type = code, .lengths = {3}, .pointers = {0}, .boundaries = {0, 1}}
            .bytes());
    const TokenFile file(folder / "t");
    CHECK(read_all(file) == Tokens{3, 1, 127});
  };
  check(1, std::uint8_t{});
  check(2, std::int8_t{});
  check(3, std::int16_t{});
  check(4, std::int32_t{});
  check(5, std::int64_t{});
  check(8, std::uint16_t{});
}

TEST_CASE("a multimodal index has one more byte per sequence", "[token_file]") {
  const ScratchFolder folder;
  folder.write("t.bin", little_endian(std::vector<std::uint16_t>{3, 1}));
  folder.write("t.idx",
               fourfold::test::Index{.lengths = {1, 1}, .pointers = {0, 2}, .boundaries = {0, 1, 2}}
                       .bytes() +
                   "\1\1");
  CHECK(TokenFile(folder / "t").tokens() == 2);
}

TEST_CASE("both versions of llm.c files are read", "[token_file]") {
  const ScratchFolder folder;
  const auto gpt2 = folder.write(
      "gpt2.bin", fourfold::test::llmc(20240520, 1, 3,
                                       little_endian(std::vector<std::uint16_t>{50256, 0, 65535})));
  const auto llama = folder.write(
      "llama.bin",
      fourfold::test::llmc(20240801, 7, 2, little_endian(std::vector<std::uint32_t>{128000, 5})));
  const TokenFile narrow(gpt2);
  CHECK(narrow.format() == TokenFormat::llmc);
  CHECK(narrow.type() == TokenType::u16);
  CHECK_FALSE(narrow.documents());
  CHECK(read_all(narrow) == Tokens{50256, 0, 65535});
  narrow.verify_index();
  const TokenFile wide(llama);
  CHECK(wide.type() == TokenType::u32);
  CHECK(read_all(wide) == Tokens{128000, 5});
}

TEST_CASE("what is written is the format, byte for byte", "[token_file]") {
  const ScratchFolder folder;
  for (const auto& [stem, type] : {std::pair{"u16", TokenType::u16}, {"i32", TokenType::i32}}) {
    TokenFileWriter writer(folder / stem, type);
    for (const Tokens& document : {Tokens{5, 6, 7}, Tokens{1, 65535, 40000}, Tokens{2, 3, 4, 9}}) {
      writer.add_document(document);
    }
    CHECK(writer.tokens() == 10);
    CHECK(writer.documents() == 3);
    writer.publish();
    const std::int64_t bytes = type == TokenType::u16 ? 2 : 4;
    CHECK(read_bytes(folder / (std::string(stem) + ".bin")) == read_bytes(golden + stem + ".bin"));
    CHECK(read_bytes(folder / (std::string(stem) + ".idx")) ==
          fourfold::test::Index{.type = static_cast<std::uint8_t>(type),
                                .lengths = {3, 3, 4},
                                .pointers = {0, 3 * bytes, 6 * bytes},
                                .boundaries = {0, 1, 2, 3}}
              .bytes());
  }
}

TEST_CASE("nothing appears before publish, and no temporary file stays", "[token_file]") {
  const ScratchFolder folder;
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(folder.path()),
                         std::filesystem::directory_iterator());
  };
  folder.write("t.bin", "old tokens");
  folder.write("t.idx", "old index");
  {
    TokenFileWriter writer(folder / "t", TokenType::u16);
    writer.add_document(Tokens{1, 2});
    CHECK(read_bytes(folder / "t.bin") == "old tokens");
  }
  CHECK(files() == 2);
  CHECK(read_bytes(folder / "t.idx") == "old index");
  TokenFileWriter writer(folder / "t", TokenType::u16);
  writer.add_document(Tokens{1, 2});
  writer.publish();
  CHECK(files() == 2);
  CHECK(read_all(TokenFile(folder / "t")) == Tokens{1, 2});
}

TEST_CASE("a writer without a folder to write to says so", "[token_file]") {
  const ScratchFolder folder;
  try {
    TokenFileWriter(folder / "missing/t", TokenType::u16);
    FAIL("no error");
  } catch (const fourfold::UserError& error) {
    CHECK(error.code() == fourfold::ExitCode::cannot_write);
    CHECK(std::string(error.what()).find("missing/t.bin") != std::string::npos);
  }
}

TEST_CASE("the type follows Megatron's rule", "[token_file]") {
  CHECK(fourfold::io::megatron_type(65499) == TokenType::u16);
  CHECK(fourfold::io::megatron_type(65500) == TokenType::i32);
}

TEST_CASE("hints about access change nothing", "[token_file]") {
  const TokenFile file(golden + "u16");
  file.advise(fourfold::io::MappedFile::Access::random);
  file.will_need({2, 5});
  file.will_need({9, 100});
  file.will_need({1000, 1});
  CHECK(read_all(file).front() == 5);
}
