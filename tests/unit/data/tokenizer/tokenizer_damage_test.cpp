// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Tokenizer files that are damaged, or of a kind that is not supported: the message names the file
/// and the reason.
#include "log_lines.hpp"
#include "scratch_folder.hpp"
#include "source_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/data/tokenizer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::ExitCode;
using fourfold::data::open_tokenizer;
using fourfold::data::open_tokenizer_in;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;

namespace {

const std::string golden = fourfold::harness::golden_folder() + "/tokenizers/";

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
  for (const char* text : {"x", "IyE= 0\nIyI= 1\n", "<html>{}</html>", "[1, 2]"}) {
    for (const char* name : {"notes.txt", "tokenizer.json", "spm.model"}) {
      check_refused(folder.write(name, text).string(), ExitCode::config,
                    "is no tokenizer by its content");
    }
  }
  std::filesystem::remove(folder.path() / "tokenizer.json");
  check_refused(folder.write("vocab.json", "{\"a\": 0}").string(), ExitCode::config,
                "merges.txt: cannot be opened");
}

TEST_CASE("what has the name of a tokenizer and is no file is not passed over", "[tokenizer]") {
  const ScratchFolder folder;
  for (const char* name : {"tokenizer.json", "vocab.json", "tokenizer.model"}) {
    std::filesystem::create_directory(folder / name);
    check_refused(folder.path().string(), ExitCode::config,
                  "is not a regular file (it is a folder)");
    CHECK_THROWS_AS(open_tokenizer_in(folder.path()), fourfold::UserError);
    std::filesystem::remove(folder / name);
    std::filesystem::create_symlink("nowhere", folder / name);
    check_refused(folder.path().string(), ExitCode::config, "is a symbolic link to nowhere");
    std::filesystem::remove(folder / name);
  }
  CHECK(open_tokenizer_in(folder.path()) == nullptr);
}

TEST_CASE("a tokenizer.json of another version of the format is refused", "[tokenizer]") {
  const ScratchFolder folder;
  const std::string text = read_bytes(golden + "llama3.json");
  const std::string version = "\"version\"";
  const std::size_t at = text.find(version);
  REQUIRE(at != std::string::npos);
  const std::size_t end = text.find(',', at);
  for (const char* other : {"\"2.0\"", "\"1.1\"", "1.0", "[]"}) {
    const auto file = folder.write("tokenizer.json",
                                   text.substr(0, at) + version + ": " + other + text.substr(end));
    check_refused(file.string(), ExitCode::config, fmt::format("version {} of the format", other));
  }
  folder.write("tokenizer.json", text.substr(0, at) + text.substr(end + 1));
  CHECK(open_tokenizer((folder / "tokenizer.json").string())->vocab_size() > 0);
}

TEST_CASE("files that are no tokenizers are corrupt", "[tokenizer]") {
  const ScratchFolder folder;
  for (const std::string text :
       {"", "{", "{\"model\": \xff}", "{}", "{\"model\": {}}", "{\"model\": [3]}"}) {
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
  for (const std::string text : {"\x0a\x01", "\x0a\xff\xff\xff\xff\x7f",
                                 "\x7f"
                                 "ELF\x02\x01"}) {
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
  check_changed("\"id\": 706", "\"id\": -1", ExitCode::data_corrupt, "the number -1");
  check_changed("\"id\": 706", "\"id\": 9000000000", ExitCode::data_corrupt,
                "the number 9000000000");
  check_changed("\"id\": 706", "\"id\": \"x\"", ExitCode::data_corrupt, "the number \"x\"");
  check_changed("\"content\": \"<|endoftext|>\"", "\"content\": 5", ExitCode::data_corrupt,
                "'content' is missing");
  check_changed("\"Regex\": \"", "\"Shape\": \"", ExitCode::data_corrupt,
                "neither a Regex nor a String");
  check_changed("\"behavior\": \"Isolated\"", "\"behavior\": \"Mixed\"", ExitCode::data_corrupt,
                "the behavior 'Mixed'");
  check_changed("\"pretokenizers\": [", "\"parts\": [", ExitCode::data_corrupt,
                "'pretokenizers' of a Sequence is missing");
  check_changed("\"normalizer\": null", "\"normalizer\": 5", ExitCode::data_corrupt,
                "a normalizer is not an object");
  check_changed("\"normalizer\": null", "\"normalizer\": {\"type\": 5}", ExitCode::data_corrupt,
                "'type' is missing or not a text");
  check_changed("\"Ġ t\"", "\"Ġt\"", ExitCode::data_corrupt, "is 'Ġt' instead of two tokens");
  check_changed("\"Ġ t\"", "[\"Ġ\"]", ExitCode::data_corrupt, "is [\"Ġ\"] instead of two tokens");
  check_changed("\"Ġ t\"", "\"Ġ unknown\"", ExitCode::data_corrupt,
                "('Ġ' and 'unknown') needs the token");
}

TEST_CASE("components outside the subset are named", "[tokenizer]") {
  const auto config = ExitCode::config;
  for (const char* type : {"Bert", "StripAccents", "Nmt", "Precompiled", "ByteLevel", "Foo"}) {
    check_changed("\"normalizer\": null", fmt::format("\"normalizer\": {{\"type\": \"{}\"}}", type),
                  config, fmt::format("the normalizer {}", type));
    check_changed(
        "\"normalizer\": null",
        fmt::format("\"normalizer\": {{\"type\": \"Sequence\", \"normalizers\": [{{\"type\": "
                    "\"NFC\"}}, {{\"type\": \"{}\"}}]}}",
                    type),
        config, fmt::format("the normalizer {}", type));
  }
  check_changed("\"normalizer\": null", R"("normalizer": {"type": "Prepend", "prepend": ""})",
                config, "a Prepend normalizer without a text");
  for (const char* expression : {"^", "a*", "(?=b)", "|a"}) {  // the library counts wrongly then
    const std::string replace = fmt::format(
        R"({{"type": "Replace", "pattern": {{"Regex": "{}"}}, "content": "b"}})", expression);
    const std::string reason = fmt::format("the expression '{}' of a Replace", expression);
    check_changed("\"normalizer\": null", "\"normalizer\": " + replace, config,
                  reason + " normalizer can match an empty text");
    check_changed("\"decoder\": {", "\"decoder\": " + replace + ", \"was\": {", config,
                  reason + " decoder can match an empty text");
  }
  std::string nested = "{\"type\": \"NFC\"}";
  for (int depth = 0; depth < 9; ++depth) {
    nested = fmt::format("{{\"type\": \"Sequence\", \"normalizers\": [{}]}}", nested);
  }
  check_changed("\"normalizer\": null", "\"normalizer\": " + nested, config,
                "a normalizer nested 9 Sequences deep");
  check_changed("\"type\": \"BPE\"", "\"type\": \"Unigram\"", config, "a model of type Unigram");
  check_changed("\"vocab\": {", "\"vocab\": {}, \"was\": {", config, "an empty vocabulary");
  check_changed("\"type\": \"BPE\"", "\"type\": \"WordPiece\"", config,
                "a model of type WordPiece");
  check_changed("\"end_of_word_suffix\": null", "\"end_of_word_suffix\": \"</w>\"", config,
                "end_of_word_suffix '</w>'");
  check_changed("\"dropout\": null", "\"dropout\": 0.1", config, "dropout");
  for (const char* type :
       {"BertPreTokenizer", "CharDelimiterSplit", "Punctuation", "UnicodeScripts", "FixedLength"}) {
    check_changed("\"type\": \"ByteLevel\"", fmt::format("\"type\": \"{}\"", type), config,
                  fmt::format("the pre-tokenizer {}", type));
  }
  for (const char* type : {"BPEDecoder", "WordPiece", "CTC"}) {
    check_changed("\"decoder\": {\n\"type\": \"ByteLevel\"",
                  fmt::format("\"decoder\": {{\n\"type\": \"{}\"", type), config,
                  fmt::format("the decoder {}", type));
  }
  check_changed("\"type\": \"Split\"", "\"type\": \"ByteLevel\"", config,
                "the pre-tokenizer ByteLevel after ByteLevel");
}

TEST_CASE("splitting expressions that others would read differently are refused", "[tokenizer]") {
  check_expression(R"(\\w+)", R"(the escape '\w')");
  check_expression(R"([a-z&&[^b]])", "a set inside [...]");
  check_expression(R"([[:alpha:]]+)", "a set inside [...]");
  check_expression(R"([]a])", "']' as the first character");
  check_expression(R"(\\x41)", R"(the escape '\x' without)");
  check_expression(R"(\\x{110000000}a)", R"(the escape '\x' without)");
  check_expression(R"((?i)a)", "the group '(?i)'");
  check_expression(R"((?<name>a))", "the group '(?<n'");
  check_expression(R"(a{99999999999})", "cannot be compiled");
  check_expression(R"([a-\\s])", "a set as an end of a range");
  check_expression(R"(\\p{Block=Thai})", "the property 'Block=Thai'");
  check_expression(R"(\\pL)", R"(the escape '\p' without a name)");
  check_expression(R"(\\u12)", R"(the escape '\u' without four)");
  check_expression(R"((a)", "cannot be compiled");
  check_expression(R"(\\p{Nonsense})", "cannot be compiled");
}

// Of each the library (0.23.3) makes other pieces than PCRE2 would: `(?i:ss)` finds ß, `(?i:[ß])`
// finds ss, `(?i:[\p{L}])` finds U+0345, which is a mark. tokenizers.pre_tokenizers.Split shows it.
TEST_CASE("case folding to several characters is refused", "[tokenizer]") {
  check_expression("(?i:ss)", "'ß', or the several characters that it folds to");
  check_expression("(?i:a|xs(?:t)b)", "'ﬅ', or");
  check_expression("x(?i:(?:f)i)", "'ﬁ', or");
  check_expression("(?i:'s|of{1}fe)", "'ﬀ', or");
  check_expression("(?i:\u017f\u0053)", "'ß', or");
  check_expression("(?i:İ)", "'İ', or");
  check_expression("(?i:a(?:ẞ)+)", "'ẞ', or");
  check_expression("(?i:ΐ)", "'ΐ', or");
  check_expression("(?i:եւ)", "'և', or");
  check_expression("(?i:[aß])", "'ß', or");
  check_expression("(?i:[^À-ü])", "'ß', or");
  check_expression(R"((?i:[\\p{L}]))", R"('\p{L}' in [...] under (?i:)");
  check_expression(R"((?i:[^\\S]))", R"('\S' in [...] under (?i:)");
}

// Bytes of good files changed at random: whatever comes of it is refused by name, or a tokenizer
// that encodes and decodes.
TEST_CASE("tokenizer files with random damage are refused or used, nothing else", "[tokenizer]") {
  const fourfold::harness::LogLines quiet;
  const std::string letters = "\"{}[]:,0198-e.tfn\\u\x80\xE2▁Ġ ";
  const auto key = fourfold::philox_key(3, fourfold::RandomUse::test);
  const ScratchFolder folder;
  int refused = 0;
  int used = 0;
  std::uint64_t round = 0;
  for (const char* name :
       {"qwen2.5", "pythia", "smollm", "deepseek", "llama2", "gemma", "mistral", "phi3", "nfkc"}) {
    const std::string good = read_bytes(golden + "structures/" + name + ".json");
    const std::size_t vocab = good.find("\"vocab\"");
    for (int damage = 0; damage < 60; ++damage, ++round) {
      std::string text = good;
      for (std::uint64_t change = 0; change < 1 + round % 3; ++change) {
        const auto block = fourfold::philox(key, round, change);
        // Mostly before the vocabulary, where the structure is.
        const std::size_t end = block.word[0] % 4 == 0 ? text.size() : std::min(vocab, text.size());
        const std::size_t place = block.word[1] % end;
        const std::size_t length = 1 + block.word[2] % (block.word[0] % 3 == 0 ? 20 : 1);
        text.replace(place, length, 1, letters[block.word[3] % letters.size()]);
      }
      CAPTURE(name, round);
      try {
        const auto tokenizer = open_tokenizer(folder.write("tokenizer.json", text).string());
        std::vector<std::int32_t> ids;
        tokenizer->encode("  In the <s> beginning\n12 \u4e2d\u6587\u0301\xFF z", ids);
        tokenizer->decode(ids);
        ++used;
      } catch (const fourfold::UserError& error) {
        CHECK((error.code() == ExitCode::data_corrupt || error.code() == ExitCode::config));
        ++refused;
      }
    }
  }
  CHECK(refused > 100);
  CHECK(used > 25);
}
