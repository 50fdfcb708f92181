// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"
#include "source_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/data/tokenizer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::ExitCode;
using fourfold::data::open_tokenizer;
using fourfold::data::Tokenizer;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;

namespace {

using Ids = std::vector<std::int32_t>;

const std::string golden = fourfold::harness::golden_folder() + "/tokenizers/";

Ids encode(Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

Ids numbers_in(const std::string& text) {
  std::istringstream stream(text);
  Ids ids;
  for (std::int32_t id = 0; stream >> id;) {
    ids.push_back(id);
  }
  return ids;
}

/// Index of the first difference, for a message that can be read.
std::size_t first_difference(const Ids& a, const Ids& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                  a.begin());
}

}  // namespace

// The expected tokens were made by tests/golden/make_tokenizer_goldens.py with the tokenizers
// library.
TEST_CASE("byte-level BPE gives the tokens of the tokenizers library on a nasty page",
          "[tokenizer]") {
  const std::string page = read_bytes(golden + "nasty.txt");
  for (const auto& [tokenizer_name, ids_name] : {std::pair{"gpt2", "gpt2"},
                                                 {"gpt2/vocab.json", "gpt2"},
                                                 {"gpt2.json", "gpt2"},
                                                 {"llama3.json", "llama3"},
                                                 {"gpt4o.json", "gpt4o"},
                                                 {"prefix_space.json", "prefix_space"},
                                                 {"words.json", "words"}}) {
    CAPTURE(tokenizer_name);
    const auto tokenizer = open_tokenizer(golden + tokenizer_name);
    const Ids expected = numbers_in(read_bytes(golden + ids_name + ".ids"));
    const Ids ids = encode(*tokenizer, page);
    const std::size_t difference = first_difference(ids, expected);
    CAPTURE(difference);
    if (difference < std::min(ids.size(), expected.size())) {
      UNSCOPED_INFO(
          "after: " << tokenizer->decode(std::span(ids).first(difference))
                           .substr(
                               std::max<std::size_t>(
                                   tokenizer->decode(std::span(ids).first(difference)).size(), 40) -
                               40));
    }
    CHECK(ids.size() == expected.size());
    CHECK((ids == expected));
    CHECK((encode(*tokenizer, page) == expected));  // from the memory of words
  }
}

// spm_encode takes one line at a time, and so does this; spm.ids is what it printed.
TEST_CASE("SentencePiece gives the tokens of spm_encode", "[tokenizer]") {
  const auto tokenizer = open_tokenizer(golden + "spm.model");
  CHECK(tokenizer->vocab_size() == 600);
  CHECK(tokenizer->end_of_text() == 2);
  std::istringstream lines(read_bytes(golden + "spm.txt"));
  std::istringstream expected(read_bytes(golden + "spm.ids"));
  int compared = 0;
  for (std::string line, ids; std::getline(lines, line) && std::getline(expected, ids);
       ++compared) {
    CHECK((encode(*tokenizer, line) == numbers_in(ids)));
  }
  CHECK(compared > 100);
  CHECK(tokenizer->decode(encode(*tokenizer, "In the beginning \U0001F600")) ==
        "In the beginning \U0001F600");
}

TEST_CASE("the byte tokenizer is its text", "[tokenizer]") {
  const auto tokenizer = open_tokenizer("byte");
  CHECK(tokenizer->vocab_size() == 257);
  CHECK(tokenizer->end_of_text() == 256);
  std::string all;
  Ids numbers;
  for (int byte = 0; byte < 256; ++byte) {
    all.push_back(static_cast<char>(byte));
    numbers.push_back(byte);
  }
  CHECK(encode(*tokenizer, all) == numbers);
  CHECK(tokenizer->decode(numbers) == all);
  CHECK(tokenizer->decode(Ids{72, 105, 256, 33}) == "Hi!");
  CHECK(encode(*tokenizer, "").empty());
  for (const std::int32_t outside : {-1, 257}) {
    CHECK_THROWS_AS(tokenizer->decode(Ids{outside}), fourfold::UserError);
  }
}

// Text that is UTF-8 is compared with the tokenizers library above; what is not must at least come
// back as it was.
TEST_CASE("byte-level BPE gives back all bytes, valid UTF-8 or not", "[tokenizer]") {
  const auto tokenizer = open_tokenizer(golden + "llama3.json");
  const auto key = fourfold::philox_key(2, fourfold::RandomUse::test);
  for (std::uint64_t round = 0; round < 400; ++round) {
    std::string text;
    for (std::uint64_t i = 0; i < round % 100; ++i) {
      const auto block = fourfold::philox(key, round, i);
      // Mostly bytes of multi-byte characters, so that many almost are one.
      text.push_back(static_cast<char>(block.word[0] % 4 == 0 ? block.word[1] % 128
                                                              : 0x80 + block.word[1] % 128));
    }
    CHECK(tokenizer->decode(encode(*tokenizer, text)) == text);
  }
  for (const std::string text :
       {"\xC0\x80", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF4\x90\x80\x80", "\xE2\x82", "a\xFFz",
        "\xF0\x9F\x98", "\xC3\xA9\xC3", "\x80\x80\x80"}) {
    CHECK(tokenizer->decode(encode(*tokenizer, text)) == text);
  }
  // Invalid bytes are pieces of their own: what stands around them is split as if it stood alone.
  Ids apart = encode(*tokenizer, "the end");
  const Ids bytes = encode(*tokenizer, "\xFF\xFE");
  apart.insert(apart.end(), bytes.begin(), bytes.end());
  const Ids rest = encode(*tokenizer, "the end");
  apart.insert(apart.end(), rest.begin(), rest.end());
  CHECK(encode(*tokenizer, "the end\xFF\xFEthe end") == apart);
}

// PCRE2 10.42 has no class for them, so they may be split elsewhere than in the tokenizers library.
TEST_CASE("characters of later Unicode come back as they were", "[tokenizer]") {
  // Of Unicode 15, 15.1, 16, 17 and 18: letters, digits, marks in an order that a later NFC
  // changes, a pair that a later NFC composes.
  const std::string text =
      "a\U00031350b \U0001E4D0\U0001E4F0 \U0002EBF0 \U00010D50\U00010D40 x\U00010EFD\U0001E4EEy "
      "\U000105D2\u0307 \U000323B0 \U0003D000\u0378 \U0001E4EE\u0334";
  for (const char* name :
       {"llama3.json", "gpt4o.json", "structures/qwen2.5.json", "structures/pythia.json",
        "structures/smollm.json", "structures/deepseek.json", "structures/llama2.json",
        "structures/gemma.json", "structures/phi3.json", "structures/mistral.json"}) {
    CAPTURE(name);
    const auto tokenizer = open_tokenizer(golden + name);
    CHECK(tokenizer->decode(encode(*tokenizer, text)) == text);
  }
}
