// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Tokens and text of the `tokenizers` library, for small tokenizers of the structures of published
/// ones, and for odd files that it accepts; tests/golden/make_tokenizer_goldens.py wrote both.
#include "log_lines.hpp"
#include "scratch_folder.hpp"
#include "source_folder.hpp"

#include <fourfold/data/tokenizer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

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

/// What the library prints for bytes that are not UTF-8, which a Tokenizer gives as they are: one
/// U+FFFD for each longest beginning of a character, else for each byte.
std::string with_replacements(const std::string& bytes) {
  const auto quoted =
      nlohmann::json(bytes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(quoted).get<std::string>();
}

void check_decoded(const Tokenizer& tokenizer, const Ids& ids, const std::string& expected) {
  const std::string text = tokenizer.decode(ids);
  CHECK(with_replacements(text) == expected);
}

}  // namespace

TEST_CASE("structures of published tokenizers give the tokens and the text of the library",
          "[tokenizer]") {
  const auto expected = nlohmann::json::parse(read_bytes(golden + "structures/expected.json"));
  const std::string page = read_bytes(golden + "structures/page.txt");
  CHECK(expected.size() == 13);
  for (const auto& [name, values] : expected.items()) {
    CAPTURE(name);
    const auto tokenizer = open_tokenizer(golden + "structures/" + name + ".json");
    CHECK(encode(*tokenizer, page) == values.at("ids").get<Ids>());
    CHECK(encode(*tokenizer, page) == values.at("ids").get<Ids>());  // from the memory of words
    check_decoded(*tokenizer, values.at("ids"), values.at("decoded"));
    check_decoded(*tokenizer, values.at("mixed"), values.at("decoded_mixed"));
  }
}

TEST_CASE("odd files that the library accepts give its tokens and its text", "[tokenizer]") {
  const fourfold::harness::LogLines quiet;
  const auto cases = nlohmann::json::parse(read_bytes(golden + "odd.json"));
  CHECK(cases.size() > 180);
  for (const auto& odd : cases) {
    const auto name = odd.at("name").get<std::string>();
    CAPTURE(name);
    const ScratchFolder folder;
    const auto file = folder.write("tokenizer.json", odd.at("tokenizer").dump());
    const auto tokenizer = open_tokenizer(file.string());
    for (const auto& text : odd.at("texts")) {
      CAPTURE(text.dump());
      CHECK(encode(*tokenizer, text.at("text").get<std::string>()) == text.at("ids").get<Ids>());
    }
    for (const auto& decoded : odd.at("decoded")) {
      CAPTURE(decoded.dump());
      check_decoded(*tokenizer, decoded.at("ids"), decoded.at("text"));
    }
  }
}
