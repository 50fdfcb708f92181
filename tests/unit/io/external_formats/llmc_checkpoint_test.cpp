// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/llmc_checkpoint.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::DType;
using fourfold::Shape;
using fourfold::UserError;
using fourfold::harness::ScratchFolder;
using fourfold::io::LlmcCheckpoint;
using fourfold::io::LlmcSizes;

namespace {

/// As llm.c's train_gpt2.py writes them: i32 at 0 magic, 1 version, 2 positions, 3 vocabulary, 4
/// layers, 5 heads, 6 features, 7 padded vocabulary.
std::string header_by_hand(std::vector<std::int32_t> words) {
  words.resize(256);
  std::string bytes(1024, '\0');
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

/// Elements of all arrays, counted from the model and not from the file: L layers, C features.
std::size_t elements(std::size_t T, std::size_t Vp, std::size_t L, std::size_t C) {
  const std::size_t norms = 2 * C;
  const std::size_t attention = 3 * C * C + 3 * C + C * C + C;
  const std::size_t feed_forward = 4 * C * C + 4 * C + 4 * C * C + C;
  return Vp * C + T * C + L * (2 * norms + attention + feed_forward) + norms;
}

std::string refusal(const ScratchFolder& scratch, const std::string& bytes) {
  try {
    const LlmcCheckpoint checkpoint(scratch.write("model.bin", bytes));
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

const std::vector<std::int32_t> words{20240326, 3, 7, 30, 3, 2, 6, 32};

}  // namespace

TEST_CASE("llm.c's files: sizes from the header, arrays where they lie") {
  const ScratchFolder scratch;
  std::string bytes = header_by_hand(words) + std::string(4 * elements(7, 32, 3, 6), '\0');
  const float last = 2.5F;
  std::memcpy(bytes.data() + bytes.size() - 4, &last, 4);
  const float first_of_wpe = -1.5F;
  std::memcpy(bytes.data() + 1024 + 4 * 32 * 6, &first_of_wpe, 4);
  const LlmcCheckpoint checkpoint(scratch.write("model.bin", bytes));
  CHECK(checkpoint.sizes() ==
        LlmcSizes{
            .context = 7, .vocab = 30, .padded_vocab = 32, .layers = 3, .heads = 2, .hidden = 6});
  REQUIRE(checkpoint.arrays().size() == 16);
  float value = 0;
  const auto& wpe = checkpoint.arrays()[1];
  CHECK((wpe.name() == "wpe" && wpe.shape() == Shape{7, 6}));
  wpe.read(0, std::as_writable_bytes(std::span(&value, 1)));
  CHECK(value == first_of_wpe);
  const auto& lnfb = checkpoint.arrays()[15];
  CHECK((lnfb.name() == "lnfb" && lnfb.shape() == Shape{6}));
  lnfb.read(20, std::as_writable_bytes(std::span(&value, 1)));
  CHECK(value == last);
  CHECK(fourfold::io::llmc_header(checkpoint.sizes(), DType::f32) == bytes.substr(0, 1024));
}

TEST_CASE("llm.c's files: version 5 is bf16") {
  const ScratchFolder scratch;
  std::vector<std::int32_t> bf16 = words;
  bf16[1] = 5;
  const std::string bytes = header_by_hand(bf16) + std::string(2 * elements(7, 32, 3, 6), '\0');
  const LlmcCheckpoint checkpoint(scratch.write("model.bin", bytes));
  CHECK(checkpoint.arrays()[0].dtype() == DType::bf16);
  CHECK(fourfold::io::llmc_header(checkpoint.sizes(), DType::bf16) == bytes.substr(0, 1024));
}

TEST_CASE("llm.c's files: what is none, or does not hold together, is refused") {
  const ScratchFolder scratch;
  const std::string data(4 * elements(7, 32, 3, 6), '\0');
  CHECK(refusal(scratch, header_by_hand(words) + data) == "accepted");
  CHECK_THAT(refusal(scratch, header_by_hand(words) + data + "x"), ContainsSubstring("takes"));
  CHECK_THAT(refusal(scratch, (header_by_hand(words) + data).substr(0, 5000)),
             ContainsSubstring("has 5000 bytes"));
  CHECK_THAT(refusal(scratch, header_by_hand(words).substr(0, 1023)),
             ContainsSubstring("is no model of llm.c"));
  CHECK_THAT(refusal(scratch, ""), ContainsSubstring("is no model of llm.c"));
  const std::vector<std::pair<std::size_t, std::int32_t>> changes{
      {0, 20240520}, {1, 1},          {1, 4}, {2, 0},  {2, -7}, {3, 33},         {3, 0},
      {4, 0},        {4, 2147483647}, {5, 4}, {5, 0},  {5, -2}, {6, 2147483647}, {6, 0},
      {7, 29},       {7, -1},         {4, 2}, {6, 12}, {2, 8},  {7, 33}};
  for (const auto& [place, value] : changes) {
    std::vector<std::int32_t> changed = words;
    changed[place] = value;
    INFO(place << " = " << value);
    CHECK(refusal(scratch, header_by_hand(changed) + data) != "accepted");
  }
}

TEST_CASE("llm.c's files: whatever byte of a header is changed, arrays fill what is accepted") {
  const ScratchFolder scratch;
  std::string bytes = header_by_hand(words) + std::string(4 * elements(7, 32, 3, 6), '\0');
  const std::filesystem::path path = scratch.write("model.bin", bytes);
  int accepted = 0;
  for (std::size_t place = 0; place < 32; ++place) {
    for (int value = 0; value < 256; ++value) {
      std::string header = bytes.substr(0, 1024);
      header[place] = static_cast<char>(value);
      std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
          .write(header.data(), 1024);
      try {
        const LlmcCheckpoint checkpoint(path);
        ++accepted;
        std::uint64_t end = 1024;
        for (const auto& array : checkpoint.arrays()) {
          end += array.bytes();
        }
        CHECK(end == bytes.size());
        CHECK(checkpoint.sizes().vocab <= checkpoint.sizes().padded_vocab);
      } catch (const UserError&) {
      }
    }
  }
  // As it is, 32 times; 31 other vocabularies of at most 32 rows; 3 other counts of heads.
  CHECK(accepted == 32 + 31 + 3);
}
