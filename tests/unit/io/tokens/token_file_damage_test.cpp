// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Token files are untrusted: whatever is wrong with one, the reader names it or reads it; it never
/// crashes.
#include "scratch_folder.hpp"
#include "token_bytes_by_hand.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/io/token_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <functional>
#include <limits>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::ExitCode;
using fourfold::harness::ScratchFolder;
using fourfold::io::TokenFile;
using fourfold::test::Index;
using fourfold::test::little_endian;
using fourfold::test::llmc;

namespace {

struct Outcome {
  ExitCode code = ExitCode::finished;
  std::string message;
};

Outcome outcome_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const fourfold::UserError& error) {
    return {error.code(), error.what()};
  }
  return {};
}

/// Opens and reads everything there is.
void read_everything(const std::filesystem::path& path) {
  const TokenFile file(path);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.tokens()));
  file.read(0, tokens);
  for (std::int64_t i = 0; i < file.documents().value_or(0); ++i) {
    file.document(i);
  }
  file.verify_index();
}

const std::string six_tokens = little_endian(std::vector<std::uint16_t>{1, 2, 3, 4, 5, 6});
const Index good{.lengths = {2, 3, 1}, .pointers = {0, 4, 10}, .boundaries = {0, 2, 3}};

/// Outcome of reading a pair whose index is damaged (or whose tokens are these).
Outcome with_index(const std::string& index, const std::string& tokens = six_tokens) {
  const ScratchFolder folder;
  folder.write("t.bin", tokens);
  folder.write("t.idx", index);
  return outcome_of([&] { read_everything(folder / "t.bin"); });
}

Outcome with_llmc(const std::string& bytes) {
  const ScratchFolder folder;
  const auto path = folder.write("t.bin", bytes);
  return outcome_of([&] { read_everything(path); });
}

void check_corrupt(const Outcome& outcome, const std::string& fragment) {
  CHECK(outcome.code == ExitCode::data_corrupt);
  CHECK_THAT(outcome.message, ContainsSubstring(fragment));
}

}  // namespace

TEST_CASE("the undamaged pair is read", "[token_file]") {
  CHECK(with_index(good.bytes()).message.empty());
}

TEST_CASE("missing files are named", "[token_file]") {
  const ScratchFolder folder;
  const Outcome outcome = outcome_of([&] { TokenFile(folder / "nowhere.bin"); });
  CHECK(outcome.code == ExitCode::config);
  CHECK_THAT(outcome.message, ContainsSubstring("nowhere.bin: cannot be opened (No such file"));
  CHECK_THAT(outcome_of([&] { TokenFile(folder / "nowhere"); }).message,
             ContainsSubstring("nowhere.bin"));
  CHECK_THAT(outcome_of([&] { TokenFile(folder / "nowhere.idx"); }).message,
             ContainsSubstring("nowhere.bin"));
  std::filesystem::create_directory(folder / "folder.bin");
  CHECK_THAT(outcome_of([&] { TokenFile(folder / "folder.bin"); }).message,
             ContainsSubstring("not a regular file"));
}

TEST_CASE("empty files are corrupt", "[token_file]") {
  check_corrupt(with_llmc(""), "t.bin: is empty");
  check_corrupt(with_index("", six_tokens), "t.idx: byte 0: ends inside the header");
  check_corrupt(with_index(good.bytes(), ""), "t.bin: is empty");
  check_corrupt(with_index(Index{.lengths = {}, .pointers = {}, .boundaries = {0}}.bytes()),
                "no document");
}

TEST_CASE("wrong magic, version and type are named with their place", "[token_file]") {
  Index index = good;
  index.magic[0] = 'X';
  check_corrupt(with_index(index.bytes()), "t.idx: byte 0: does not start with MMIDIDX");
  index = good;
  index.version = 2;
  check_corrupt(with_index(index.bytes()), "byte 9: has version 2");
  for (const int type : {0, 6, 7, 9, 255}) {
    index = good;
    index.type = static_cast<std::uint8_t>(type);
    check_corrupt(with_index(index.bytes()), "byte 17: type code " + std::to_string(type));
  }
  check_corrupt(with_llmc(llmc(20240522, 1, 6, six_tokens)), "byte 0: no .idx lies beside it");
  check_corrupt(with_llmc(llmc(20240520, 7, 6, six_tokens)), "byte 4: has version 7");
  check_corrupt(with_llmc(llmc(20240801, 1, 3, six_tokens)), "byte 4: has version 1");
  check_corrupt(with_llmc("\1\2\3"), "byte 0:");
}

TEST_CASE("what is no token file is told by its kind, not called damaged", "[token_file]") {
  using namespace std::string_literals;
  const std::string tokens(2000, '\7');
  const std::vector<std::pair<std::string, std::string>> kinds{
      {"{\"text\": \"one\"}\n", "is text, not tokens"},
      {"Chapter one. \xc3\x89t\xc3\xa9.\n", "fourfold data prepare --output PREFIX"},
      {"\xff\xfeo\0n\0e\0"s, "is text, not tokens"},
      {"\x93NUMPY\1\0v\0{'descr': '<u2'}"s, "is a NumPy array"},
      {"\x1f\x8b\x08\0\0"s, "is gzip-compressed"},
      {"PAR1" + tokens, "is a Parquet file"},
      {little_endian(std::vector<std::uint16_t>{50256, 11, 262, 318, 9}), "bare tokens"},
      {tokens, "no .idx lies beside it"},
      {little_endian(std::vector<std::uint32_t>(600, 7)), "bare tokens"},
  };
  for (const auto& [bytes, message] : kinds) {
    const Outcome outcome = with_llmc(bytes);
    CHECK(outcome.code == ExitCode::config);
    CHECK_THAT(outcome.message, ContainsSubstring(message));
    CHECK_THAT(outcome.message, !ContainsSubstring("damaged"));
  }
}

TEST_CASE("counts that do not fit the file are named", "[token_file]") {
  for (const std::uint64_t count :
       {std::uint64_t{4}, std::uint64_t{1} << 32, std::uint64_t{1} << 60, std::uint64_t{1} << 62,
        std::numeric_limits<std::uint64_t>::max()}) {
    std::string index = good.bytes();
    index.replace(18, 8, little_endian(count));
    check_corrupt(with_index(index), "byte 18: announces " + std::to_string(count) + " sequences");
    index = good.bytes();
    index.replace(26, 8, little_endian(count));
    check_corrupt(with_index(index), std::to_string(count) + " document boundaries");
  }
  check_corrupt(with_index(good.bytes() + "x"), "1 bytes follow the arrays");
  for (const std::int32_t count : {-1, 0, 5, 7, std::numeric_limits<std::int32_t>::max()}) {
    check_corrupt(with_llmc(llmc(20240520, 1, count, six_tokens)),
                  "byte 8: announces " + std::to_string(count));
  }
}

TEST_CASE("an index of other tokens is noticed at open", "[token_file]") {
  check_corrupt(with_index(good.bytes(), six_tokens.substr(2)), "belong to different files");
  check_corrupt(with_index(good.bytes(), six_tokens + "ab"), "belong to different files");
  check_corrupt(with_index(good.bytes(), six_tokens + "a"), "t.bin: byte 13: ends inside a token");
}

TEST_CASE("misnumbered entries are named with their place", "[token_file]") {
  Index index = good;
  index.lengths[1] = -3;
  check_corrupt(with_index(index.bytes()), "t.idx: byte 38: sequence 1 has length -3");
  index = good;
  index.lengths[0] = 1;
  check_corrupt(with_index(index.bytes()),
                "byte 54: sequence 1 starts at byte 4 where the one before ends at 2");
  index = good;
  index.pointers[1] = std::numeric_limits<std::int64_t>::max() - 1;
  check_corrupt(with_index(index.bytes()),
                "byte 54: sequence 1 starts at byte 9223372036854775806");
  index = good;
  index.pointers[1] = 3;
  check_corrupt(with_index(index.bytes()), "byte 54: sequence 1 starts at byte 3");
  index = good;
  index.boundaries[1] = 7;
  check_corrupt(with_index(index.bytes()), "byte 78: document 1 begins at sequence 7 of 3");
  index = good;
  index.boundaries = {0, 3, 1, 3};
  check_corrupt(with_index(index.bytes()), "document 1 runs backwards");
  index = good;
  index.boundaries = {1, 2, 3};
  check_corrupt(with_index(index.bytes()), "byte 70: document boundaries run from 1 to 3");
}

TEST_CASE("tokens outside the vocabulary are named with file and number", "[token_file]") {
  const ScratchFolder folder;
  const auto path = folder.write(
      "t.bin",
      llmc(20240801, 7, 4, little_endian(std::vector<std::uint32_t>{1, 2, 2147483648U, 99})));
  std::vector<std::int32_t> tokens(2);
  const TokenFile file(path);
  file.read(0, tokens);
  check_corrupt(outcome_of([&] { file.read(1, tokens); }),
                "token 2 (byte 1032) is 2147483648, outside the vocabulary");
  check_corrupt(outcome_of([&] { file.read(0, tokens, 2); }),
                "token 1 (byte 1028) is 2, outside the vocabulary [0, 2)");
  folder.write("n.bin", little_endian(std::vector<std::int32_t>{4, -1}));
  folder.write("n.idx",
               Index{.type = 4, .lengths = {2}, .pointers = {0}, .boundaries = {0, 1}}.bytes());
  check_corrupt(outcome_of([&] { TokenFile(folder / "n").read(0, tokens); }),
                "token 1 (byte 4) is -1");
}

// Whatever is cut off or changed: an error of the user's, or data, never anything else.
TEST_CASE("cut and changed files never crash the reader", "[token_file]") {
  const std::string index = good.bytes();
  for (std::size_t length = 0; length < index.size(); ++length) {
    CHECK(with_index(index.substr(0, length)).code == ExitCode::data_corrupt);
  }
  const std::string file = llmc(20240520, 1, 6, six_tokens);
  for (const std::size_t length : {0, 1, 3, 4, 7, 8, 11, 12, 1023, 1024, 1025, 1035}) {
    CHECK(with_llmc(file.substr(0, length)).code == ExitCode::data_corrupt);
  }
  for (std::size_t place = 0; place < index.size(); ++place) {
    for (const int change : {0x01, 0x02, 0x80, 0xff}) {
      std::string changed = index;
      changed[place] = static_cast<char>(changed[place] ^ change);
      const ExitCode code = with_index(changed).code;
      CHECK((code == ExitCode::data_corrupt || code == ExitCode::finished));
    }
  }
  const auto key = fourfold::philox_key(1, fourfold::RandomUse::test);
  for (std::uint64_t round = 0; round < 300; ++round) {  // several fields at once
    std::string changed = index;
    for (std::uint64_t i = 0; i < 3; ++i) {
      const auto block = fourfold::philox(key, round, i);
      changed.replace(18 + block.word[0] % (index.size() - 25), 8,
                      little_endian((std::uint64_t{block.word[1]} << 32 | block.word[2]) >>
                                    block.word[3] % 64));
    }
    const ExitCode code = with_index(changed).code;
    CHECK((code == ExitCode::data_corrupt || code == ExitCode::finished));
  }
}
