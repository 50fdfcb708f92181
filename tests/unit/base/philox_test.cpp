// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/philox.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <string_view>

// Known answers of Philox4x32-10 published with Random123 (kat_vectors).
TEST_CASE("philox gives the published known answers", "[philox]") {
  const auto zero = fourfold::philox({0, 0}, 0, 0);
  CHECK(zero.word[0] == 0x6627e8d5U);
  CHECK(zero.word[1] == 0xe169c58dU);
  CHECK(zero.word[2] == 0xbc57ac4cU);
  CHECK(zero.word[3] == 0x9b00dbd8U);
  const auto ones = fourfold::philox({0xffffffffU, 0xffffffffU}, ~0ULL, ~0ULL);
  CHECK(ones.word[0] == 0x408f276dU);
  CHECK(ones.word[1] == 0x41c83b0eU);
  CHECK(ones.word[2] == 0xa20bc7c6U);
  CHECK(ones.word[3] == 0x6d5451fdU);
  const auto pi =
      fourfold::philox({0xa4093822U, 0x299f31d0U}, 0x85a308d3243f6a88ULL, 0x0370734413198a2eULL);
  CHECK(pi.word[0] == 0xd16cfe09U);
  CHECK(pi.word[1] == 0x94fdccebU);
  CHECK(pi.word[2] == 0x5001e420U);
  CHECK(pi.word[3] == 0x24126ea1U);
}

TEST_CASE("uniform numbers stay inside (0, 1)", "[philox]") {
  CHECK(fourfold::uniform_float(0) > 0.0F);
  CHECK(fourfold::uniform_float(0xffffffffU) < 1.0F);
}

TEST_CASE("normal numbers have the moments of the normal distribution", "[philox]") {
  const auto key = fourfold::philox_key(7, fourfold::RandomUse::test);
  const int count = 200000;
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  for (int i = 0; i < count; ++i) {
    const double value = fourfold::normal_float(key, static_cast<std::uint64_t>(i));
    sum += value;
    squares += value * value;
    fourths += value * value * value * value;
  }
  CHECK(std::abs(sum / count) < 0.01);  // 4.5 standard errors
  CHECK(std::abs(squares / count - 1) < 0.015);
  CHECK(std::abs(fourths / count - 3) < 0.1);
}

TEST_CASE("keys of different uses, seeds and salts differ", "[philox]") {
  const auto word = [](std::uint64_t seed, fourfold::RandomUse use, std::uint64_t salt) {
    return fourfold::philox(fourfold::philox_key(seed, use, salt), 0).word[0];
  };
  using fourfold::RandomUse;
  CHECK(word(1, RandomUse::dropout, 0) != word(1, RandomUse::sampling, 0));
  CHECK(word(1, RandomUse::dropout, 0) != word(2, RandomUse::dropout, 0));
  CHECK(word(1, RandomUse::dropout, 0) != word(1, RandomUse::dropout, 1));
  constexpr std::string_view a = "layers.0.attn.q_proj.weight";
  constexpr std::string_view b = "layers.1.attn.q_proj.weight";
  CHECK(fourfold::name_salt(a.data(), a.size()) != fourfold::name_salt(b.data(), b.size()));
}
