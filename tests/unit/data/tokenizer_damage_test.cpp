// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Tokenizer files that are damaged, or of a kind that is not supported: the message names the file
/// and the reason.
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/data/tokenizer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fmt/format.h>

#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::ExitCode;
using fourfold::data::open_tokenizer;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;

namespace {

const std::string golden = FOURFOLD_GOLDEN_DIR "/tokenizers/";

void check_refused(const std::string& named, ExitCode code, const std::string& fragment) {
  CAPTURE(fragment);
  try {
    open_tokenizer(named);
    FAIL_CHECK("no error");
  } catch (const fourfold::UserError& error) {
    CHECK(error.code() == code);
    CHECK_THAT(error.what(), ContainsSubstring(fragment));
  }
}

/// A good tokenizer.json with one place changed.
void check_changed(const std::string& from, const std::string& to, ExitCode code,
                   const std::string& fragment) {
  const ScratchFolder folder;
  std::string text = read_bytes(golden + "llama3.json");
  const std::size_t place = text.find(from);
  REQUIRE(place != std::string::npos);
  text.replace(place, from.size(), to);
  const auto file = folder.write("tokenizer.json", text);
  check_refused(file.string(), code, fragment);
  check_refused(folder.path().string(), code, file.string());  // found by the folder's name, too
}

/// The good tokenizer.json with another splitting expression.
void check_expression(const std::string& json_expression, const std::string& fragment) {
  const std::string text = read_bytes(golden + "llama3.json");
  const std::size_t begin = text.find("\"Regex\": \"") + 10;
  const std::size_t end = text.find("\"\n", begin);
  check_changed(text.substr(begin, end - begin), json_expression, ExitCode::config, fragment);
}

}  // namespace

TEST_CASE("a tokenizer that is not there is named", "[tokenizer]") {
  const ScratchFolder folder;
  check_refused("byet", ExitCode::config, "byet: there is no such tokenizer");
  check_refused(folder.path().string(), ExitCode::config, "holds no tokenizer.json");
  check_refused(folder.write("notes.txt", "x").string(), ExitCode::config,
                "is no tokenizer by its name");
  check_refused(folder.write("vocab.json", "{\"a\": 0}").string(), ExitCode::config,
                "merges.txt: cannot be opened");
}

TEST_CASE("files that are no tokenizers are corrupt", "[tokenizer]") {
  const ScratchFolder folder;
  for (const std::string text :
       {"", "{", "[1, 2", "{\"model\": \xff}", "null", "[]", "{}", "{\"model\": 3}"}) {
    check_refused(folder.write("tokenizer.json", text).string(), ExitCode::data_corrupt,
                  "tokenizer.json: ");
  }
  check_refused(
      folder.write("tokenizer.json", read_bytes(golden + "llama3.json").substr(0, 5000)).string(),
      ExitCode::data_corrupt, "is not JSON from here on");
  for (const char* number : {"1e999", "-2.5e+400"}) {
    check_refused(
        folder.write("tokenizer.json", fmt::format("{{\"model\":\n {{\"dropout\": {}}}}}", number))
            .string(),
        ExitCode::data_corrupt,
        fmt::format("tokenizer.json: line 2, byte 24: {} is a number that no double holds",
                    number));
  }
  for (const std::string text : {"", "not a model", "\x0a\xff\xff\xff\xff\x7f"}) {
    check_refused(folder.write("m.model", text).string(), ExitCode::data_corrupt,
                  "m.model: is not a SentencePiece model");
  }
  check_refused(folder.write("m.model", read_bytes(golden + "spm.model").substr(0, 4000)).string(),
                ExitCode::data_corrupt, "is not a SentencePiece model");
}

TEST_CASE("a tokenizer.json that contradicts itself is corrupt", "[tokenizer]") {
  check_changed("\"vocab\": {", "\"vocab\": 5, \"was\": {", ExitCode::data_corrupt,
                "the vocabulary is missing");
  check_changed("\"merges\": [", "\"was\": [", ExitCode::data_corrupt, "the merges are missing");
  check_changed("\"id\": 706", "\"id\": 3", ExitCode::data_corrupt, "have the same number 3");
  check_changed("\"id\": 706", "\"id\": -1", ExitCode::data_corrupt, "the number -1");
  check_changed("\"id\": 706", "\"id\": 9000000000", ExitCode::data_corrupt,
                "the number 9000000000");
  check_changed("\"id\": 706", "\"id\": \"x\"", ExitCode::data_corrupt, "the number \"x\"");
  check_changed("\"content\": \"<|endoftext|>\"", "\"content\": 5", ExitCode::data_corrupt,
                "'content' is missing");
  check_changed("\"!\": 0", "\"!\": 1", ExitCode::data_corrupt, "have the same number 1");
  check_changed("\"!\": 0", "\"!!!!!!!!!\": 0", ExitCode::data_corrupt, "no token for byte 33");
  check_changed("\"Ġ t\"", "\"Ġt\"", ExitCode::data_corrupt, "is 'Ġt' instead of two tokens");
  check_changed("\"Ġ t\"", "[\"Ġ\"]", ExitCode::data_corrupt, "is [\"Ġ\"] instead of two tokens");
  check_changed("\"Ġ t\"", "\"Ġ unknown\"", ExitCode::data_corrupt,
                "('Ġ' and 'unknown') needs the token");
}

TEST_CASE("components outside the subset are named", "[tokenizer]") {
  const auto config = ExitCode::config;
  check_changed("\"normalizer\": null", "\"normalizer\": {\"type\": \"NFC\"}", config,
                "the normalizer \"NFC\"");
  check_changed("\"type\": \"BPE\"", "\"type\": \"Unigram\"", config, "a model of type Unigram");
  check_changed("\"byte_fallback\": false", "\"byte_fallback\": true", config, "byte_fallback");
  check_changed("\"end_of_word_suffix\": null", "\"end_of_word_suffix\": \"</w>\"", config,
                "end_of_word_suffix '</w>'");
  check_changed("\"dropout\": null", "\"dropout\": 0.1", config, "dropout");
  check_changed("\"lstrip\": false", "\"lstrip\": true", config, "'<|endoftext|>' with lstrip");
  check_changed("\"behavior\": \"Isolated\"", "\"behavior\": \"MergedWithNext\"", config,
                "behavior MergedWithNext");
  check_changed("\"type\": \"ByteLevel\"", "\"type\": \"Metaspace\"", config,
                "the pre-tokenizer Metaspace");
  check_changed("\"type\": \"Split\"", "\"type\": \"ByteLevel\"", config,
                "a pre-tokenizer after ByteLevel");
}

TEST_CASE("splitting expressions that others would read differently are refused", "[tokenizer]") {
  check_expression(R"(\\w+)", R"(the escape '\w')");
  check_expression(R"(\\p{N}{1,3}+)", "'}+'");
  check_expression(R"([a-z&&[^b]])", "a set inside [...]");
  check_expression(R"([[:alpha:]]+)", "a set inside [...]");
  check_expression(R"([]a])", "']' as the first character");
  check_expression(R"(^a)", "the anchor '^'");
  check_expression(R"(a$)", "the anchor '$'");
  check_expression(R"((?i)a)", "the group '(?i)'");
  check_expression(R"((?<name>a))", "the group '(?<n'");
  check_expression(R"(a{,3}b)", "a repetition without lower bound");
  check_expression(R"(\\p{Block=Thai})", "the property 'Block=Thai'");
  check_expression(R"(\\pL)", R"(the escape '\p' without a name)");
  check_expression(R"(\\u12)", R"(the escape '\u' without four)");
  check_expression(R"((a)", "cannot be compiled");
  check_expression(R"(\\p{Nonsense})", "cannot be compiled");
  check_expression(R"(a*)", "can match an empty text");
}
