// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Decoding token by token: the same text as all at once, in whole characters, with its blanks.
#include "scratch_folder.hpp"
#include "source_folder.hpp"

#include <fourfold/base/text.hpp>
#include <fourfold/data/tokenizer.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

using fourfold::data::open_tokenizer;
using fourfold::data::Tokenizer;
using fourfold::harness::read_bytes;

namespace {

using Ids = std::vector<std::int32_t>;

const std::string golden = fourfold::harness::golden_folder() + "/tokenizers/";

Ids encode(Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, const Ids& ids) {
  auto decoder = tokenizer.stream_decoder();
  std::vector<std::string> texts;
  for (const std::int32_t id : ids) {
    texts.push_back(decoder.next(id));
  }
  texts.push_back(decoder.finish());
  return texts;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    all += text;
  }
  return all;
}

bool is_whole(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = fourfold::utf8_character_bytes(text);
    if (bytes == 0) {
      return false;
    }
    text.remove_prefix(bytes);
  }
  return true;
}

/// Tokenizers of all kinds, by what they are opened with.
const std::vector<std::string> kinds{"byte",
                                     golden + "spm.model",
                                     golden + "llama3.json",
                                     golden + "structures/llama2.json",
                                     golden + "structures/mistral.json",
                                     golden + "structures/gemma.json",
                                     golden + "structures/phi3.json",
                                     golden + "structures/pythia.json"};

}  // namespace

TEST_CASE("a stream prints words with their blanks and characters as a whole", "[tokenizer]") {
  // Characters that no vocabulary here has: each is several tokens.
  const std::string text =
      "In the beginning \U0001F600 was \u4e2d\u6587 and\u3042 \u00e9\u00e9 "
      "\U0001F468\u200D\U0001F469 end";
  for (const std::string& kind : kinds) {
    CAPTURE(kind);
    const auto tokenizer = open_tokenizer(kind);
    const Ids ids = encode(*tokenizer, text);
    const auto texts = pieces(*tokenizer, ids);
    CHECK(ids.size() > 25);
    CHECK(joined(texts) == text);
    CHECK(std::all_of(texts.begin(), texts.end(), is_whole));
    // It comes as it is decoded, not all at the end.
    CHECK(std::count_if(texts.begin(), texts.end(), [](const auto& t) { return !t.empty(); }) > 12);
  }
}

TEST_CASE("what follows a prompt is not printed like the beginning of a text", "[tokenizer]") {
  for (const std::string& kind : kinds) {
    CAPTURE(kind);
    const auto tokenizer = open_tokenizer(kind);
    const Ids prompt = encode(*tokenizer, "In the");
    Ids all = encode(*tokenizer, "In the beginning was");
    REQUIRE(std::equal(prompt.begin(), prompt.end(), all.begin()));
    auto decoder = tokenizer->stream_decoder();
    std::string continued;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string next = decoder.next(all[i]);
      continued += i < prompt.size() ? "" : next;
    }
    CHECK(continued + decoder.finish() == " beginning was");
  }
}

// spm_decode decoded each row as a whole: words, bytes of characters and of none, the unknown
// token, begin and end of a text, in any order.
TEST_CASE("SentencePiece decodes a stream as spm_decode decodes the whole", "[tokenizer]") {
  const auto tokenizer = open_tokenizer(golden + "spm.model");
  std::istringstream rows(read_bytes(golden + "spm_decoded.txt"));
  int compared = 0;
  for (std::string ids, text; std::getline(rows, ids) && std::getline(rows, text, '\x1E');
       ++compared) {
    CAPTURE(ids);
    std::istringstream numbers(ids);
    const Ids row{std::istream_iterator<std::int32_t>(numbers), {}};
    CHECK(joined(pieces(*tokenizer, row)) == text);
    CHECK(tokenizer->decode(row) == text);
  }
  CHECK(compared == 60);
}
