// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a tokenizer file is, its content tells; of a folder the first file that can be used is.
#include "log_lines.hpp"
#include "scratch_folder.hpp"
#include "source_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/data/tokenizer_files.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::StartsWith;
using fourfold::ExitCode;
using fourfold::UserError;
using fourfold::data::open_tokenizer;
using fourfold::data::open_tokenizer_in;
using fourfold::data::tokenizer_identity;
using fourfold::data::TokenizerKind;
using fourfold::harness::LogLines;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;

namespace {

const std::string golden = fourfold::harness::golden_folder() + "/tokenizers/";
const std::string unigram =
    R"({"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": null,)"
    R"( "model": {"type": "Unigram", "vocab": [["a", -1.0]], "unk_id": 0}})";

}  // namespace

TEST_CASE("the kind of a tokenizer file is told by its content, not by its name", "[tokenizer]") {
  const ScratchFolder folder;
  const auto kind = [&](const std::string& name, const std::string& from) {
    return open_tokenizer(folder.write(name, read_bytes(golden + from)).string())->description();
  };
  for (const char* name : {"x.json", "vocab.json", "x", "x.txt", "tokenizer.model.v3"}) {
    CAPTURE(name);
    CHECK_THAT(kind(name, "spm.model"), StartsWith("SentencePiece, 600 tokens"));
  }
  for (const char* name : {"x.model", "vocab.json", "x", "tokenizer.JSON"}) {
    CAPTURE(name);
    CHECK_THAT(kind(name, "llama3.json"), StartsWith("byte-level BPE, 711 tokens"));
    CHECK_THAT(kind(name, "structures/llama2.json"), StartsWith("character-level BPE"));
  }
  for (const auto& [vocab, merges] : {std::pair{"vocab.json", "merges.txt"},
                                      {"gpt2-vocab.json", "gpt2-merges.txt"},
                                      {"tokenizer.json", "merges.txt"},
                                      {"words", "merges.txt"}}) {
    CAPTURE(vocab);
    folder.write(merges, read_bytes(golden + "gpt2/merges.txt"));
    CHECK_THAT(kind(vocab, "gpt2/vocab.json"), StartsWith("byte-level BPE, 901 tokens"));
    std::filesystem::remove(folder.path() / merges);
    CHECK_THROWS_AS(open_tokenizer((folder.path() / vocab).string()), UserError);
    CHECK_THROWS_AS(tokenizer_identity((folder.path() / vocab).string()), UserError);
  }
}

// What save_pretrained of a slow tokenizer leaves: other tokens than those of the files alone.
TEST_CASE("files whose folder says that they are another tokenizer's are refused", "[tokenizer]") {
  struct Claim {
    const char* file;
    std::string text;
    std::string told;  ///< empty: it says what the files are
  };
  const auto check = [](const std::string& model, const Claim& claim) {
    CAPTURE(model, claim.file, claim.text);
    const ScratchFolder folder;
    folder.write("merges.txt", read_bytes(golden + "gpt2/merges.txt"));
    const std::string named =
        folder.write(model, read_bytes(golden + (model == "vocab.json" ? "gpt2/" : "") + model))
            .string();
    const ScratchFolder cache;  // as the cache of Hugging Face has it
    std::filesystem::create_symlink(cache.write("blob", claim.text), folder.path() / claim.file);
    if (claim.told.empty()) {
      CHECK_NOTHROW(open_tokenizer(named));
      return;
    }
    try {
      open_tokenizer(named);
      FAIL_CHECK("it was taken");
    } catch (const UserError& error) {
      CHECK(error.code() == ExitCode::config);
      CHECK_THAT(error.what(), ContainsSubstring(named) && ContainsSubstring(claim.file) &&
                                   ContainsSubstring(claim.told));
    }
  };
  const auto end_of = [](const std::string& file) {
    return std::to_string(open_tokenizer(golden + file)->end_of_text().value());
  };
  const std::string ends = end_of("gpt2/vocab.json");
  for (const Claim& claim : {
           Claim{"tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})", "Qwen2"},
           Claim{"tokenizer_config.json", R"({"add_prefix_space": true})", "add_prefix_space"},
           Claim{"tokenizer_config.json",
                 R"({"added_tokens_decoder": {"901": {"content": "<|im_start|>"}}})", "im_start"},
           Claim{"added_tokens.json", R"({"<|im_start|>": 901})", "which is none that"},
           Claim{"added_tokens.json", R"({"<|endoftext|>": 0})", ("which is " + ends)},
           Claim{"added_tokens.json", R"({"<|endoftext|>": )" + ends + "}", ""},
           Claim{"tokenizer_config.json",
                 R"({"tokenizer_class": "GPT2TokenizerFast", "add_prefix_space": false,)"
                 R"("added_tokens_decoder": {")" +
                     ends + R"(": {"content": "<|endoftext|>"}}})",
                 ""},
           Claim{"tokenizer_config.json", "{", ""},
           Claim{"tokenizer_config.json", R"({"extra_special_tokens": ["<|im_start|>"]})",
                 "a token"},
           Claim{"tokenizer_config.json", R"({"pad_token": {"content": "<pad>"}})", "<pad>"},
           Claim{"special_tokens_map.json", R"({"additional_special_tokens": ["!"]})", "\"!\" is"},
           Claim{"special_tokens_map.json",
                 R"({"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"})", ""},
           Claim{"config.json", R"({"model_type": "qwen2"})", "model_type \"qwen2\""},
           Claim{"config.json", R"({"model_type": "gpt2"})", ""},
           Claim{"config.json", R"({"tokenizer_class": "RobertaTokenizer"})", "RobertaTokenizer"},
           Claim{"tokenizer_config.json", R"({"tokenizer_class": 3, "added_tokens_decoder": []})",
                 ""},
       }) {
    check("vocab.json", claim);
  }
  const std::string stops = end_of("spm.model");
  for (const Claim& claim : {
           Claim{"tokenizer_config.json", R"({"tokenizer_class": "XLMRobertaTokenizerFast"})",
                 "XLMRoberta"},
           Claim{"added_tokens.json", R"({"<|im_start|>": 600})", "which is none that"},
           Claim{"tokenizer_config.json", R"({"tokenizer_class": "SeamlessM4TTokenizer"})",
                 "Seaml"},
           Claim{"tokenizer_config.json", R"({"tokenizer_class": "GemmaTokenizerFast"})", "Gemma"},
           Claim{"tokenizer_config.json", R"({"add_prefix_space": false})",
                 "add_prefix_space false"},
           Claim{"tokenizer_config.json", R"({"add_prefix_space": true})", ""},
           Claim{"tokenizer_config.json", R"({"additional_special_tokens": ["[user]"]})", "[user]"},
           Claim{"tokenizer_config.json", R"({"eos_token": "<unk>"})", "not the end of text"},
           Claim{"tokenizer_config.json",
                 R"({"tokenizer_class": "LlamaTokenizer", "eos_token": {"content": "</s>"}})", ""},
           Claim{"tokenizer_config.json", R"({"added_tokens_decoder": {"1": {"content": "</s>"}}})",
                 ("which is " + stops)},
           Claim{"tokenizer_config.json",
                 R"({"tokenizer_class": "LlamaTokenizer", "added_tokens_decoder": {")" + stops +
                     R"(": {"content": "</s>"}}})",
                 ""},
       }) {
    check("spm.model", claim);
  }
}

TEST_CASE("tokens that the files beside a tokenizer.json add to it are told", "[tokenizer]") {
  const ScratchFolder folder;
  const std::string file = folder.write("tokenizer.json", read_bytes(golden + "llama3.json"));
  const auto told = [&](const std::string& beside, const std::string& text) {
    folder.write(beside, text);
    const LogLines log;
    open_tokenizer(file);
    std::filesystem::remove(folder / beside);
    return log.lines.empty() ? std::string() : log.lines.front();
  };
  CHECK(
      told("tokenizer_config.json", R"({"added_tokens_decoder": {"700": {"content": "<|pad|>"}}})")
          .empty());
  CHECK(told("added_tokens.json", "[1, 2]").empty());
  CHECK_THAT(
      told("tokenizer_config.json",
           R"({"added_tokens_decoder": {"711": {"content": "<|im_start|>"}, )"
           R"("712": {"content": "<|im_end|>"}, "700": {"content": "<|endoftext|>"}}})"),
      ContainsSubstring("2 texts that") &&
          ContainsSubstring("none in it (<|im_end|>, <|im_start|>): transformers adds them"));
  CHECK_THAT(told("added_tokens.json", R"({"<|im_start|>": 711})"),
             ContainsSubstring("added_tokens.json calls tokens are none in it (<|im_start|>)"));
}

TEST_CASE("a vocab.json whose tokens mark the end of a word is no byte-level BPE", "[tokenizer]") {
  const ScratchFolder folder;
  folder.write("merges.txt", "#version: 0.2\na b</w>\n");
  const std::string file =
      folder.write("vocab.json", R"({"a": 0, "b": 1, "a</w>": 2, "b</w>": 3, "ab</w>": 4})");
  CHECK_THROWS_MATCHES(open_tokenizer(file), UserError,
                       MessageMatches(ContainsSubstring(
                           "\"</w>\" at the end of 3 tokens, where files of byte-level BPE have")));
}

TEST_CASE("the file that is written for the byte tokenizer is the byte tokenizer", "[tokenizer]") {
  const ScratchFolder folder;
  const std::string& json = fourfold::data::byte_tokenizer_json();
  const auto tokenizer = open_tokenizer(folder.write("tokenizer.json", json).string());
  CHECK(tokenizer->files().kind == TokenizerKind::tokenizer_json);
  CHECK(tokenizer->identity() == "byte");
  CHECK(tokenizer->vocab_size() == 257);
  CHECK(tokenizer->end_of_text() == 256);
  for (std::int32_t id = 0; id < 256; ++id) {
    CHECK(tokenizer->decode(std::array{id}) == std::string(1, static_cast<char>(id)));
  }
  const auto other = folder.write("other.json", json + " ");
  CHECK(tokenizer_identity(other.string()) != "byte");
}

TEST_CASE("a tokenizer is the same under any name, and another one where a file differs",
          "[tokenizer]") {
  const std::string vocabulary = read_bytes(golden + "gpt2/vocab.json");
  const std::string merges = read_bytes(golden + "gpt2/merges.txt");
  const std::string fewer = merges.substr(0, merges.rfind('\n', merges.size() - 2) + 1);
  const std::string same = tokenizer_identity(golden + "gpt2/vocab.json");
  for (const auto& [vocab_name, merges_name] : {std::pair{"vocab.json", "merges.txt"},
                                                {"gpt2-vocab.json", "gpt2-merges.txt"},
                                                {"tokenizer.json", "merges.txt"},
                                                {"words", "merges.txt"}}) {
    CAPTURE(vocab_name);
    const ScratchFolder folder;
    const std::string named = folder.write(vocab_name, vocabulary).string();
    folder.write("merges.txt", fewer);  // of another model, where the name has its own
    const auto file = folder.write(merges_name, merges);
    const auto tokenizer = open_tokenizer(named);
    CHECK(tokenizer->files().kind == TokenizerKind::vocab_and_merges);
    CHECK(tokenizer->files().main.bytes == vocabulary);
    REQUIRE(tokenizer->files().merges);
    CHECK(tokenizer->files().merges->path == file);
    CHECK(tokenizer->files().merges->bytes == merges);
    CHECK(tokenizer->identity() == same);
    CHECK(tokenizer_identity(named) == same);
    folder.write(merges_name, fewer);
    CHECK(tokenizer_identity(named) != same);
    CHECK(open_tokenizer(named)->identity() != same);
    CHECK(tokenizer->identity() == same);  // what it was made of
  }
  // Other kinds of files have no merges, whatever lies beside them.
  const ScratchFolder folder;
  folder.write("merges.txt", merges);
  for (const char* from : {"llama3.json", "spm.model"}) {
    const auto file = folder.write("vocab.json", read_bytes(golden + from));
    CHECK(open_tokenizer(file.string())->identity() == tokenizer_identity(golden + from));
    CHECK_FALSE(open_tokenizer(file.string())->files().merges);
  }
  std::filesystem::create_symlink(golden + "llama3.json", folder / "link.json");
  CHECK(tokenizer_identity((folder / "link.json").string()) ==
        tokenizer_identity(golden + "llama3.json"));
  CHECK(tokenizer_identity(golden + "gpt4o.json") != tokenizer_identity(golden + "llama3.json"));
  CHECK(tokenizer_identity("byte") == "byte");
  CHECK(open_tokenizer("byte")->identity() == "byte");
  CHECK(open_tokenizer("byte")->files().name() == "byte");
}

TEST_CASE("a folder's tokenizer is the first file that can be used, and a line says so",
          "[tokenizer]") {
  const std::string damaged = read_bytes(golden + "llama3.json").substr(0, 3000);
  const std::string vocab_alone = R"({"a": 0, "b": 1})";
  for (const auto& [name, content, why] :
       {std::tuple{"tokenizer.json", unigram, "a model of type Unigram"},
        {"tokenizer.json", damaged, "is not JSON from here on"},
        {"tokenizer.json", std::string("<html></html>"), "is no tokenizer by its content"},
        {"vocab.json", vocab_alone, "merges.txt: cannot be opened"}}) {
    const ScratchFolder folder;
    folder.write(name, content);
    {
      const LogLines log;
      CHECK_THROWS_AS(open_tokenizer(folder.path().string()), UserError);
      CHECK(log.lines.empty());
    }
    for (const char* model : {"tokenizer.model", "spiece.model"}) {
      const auto file = folder.write(model, read_bytes(golden + "spm.model"));
      const LogLines log;
      CHECK_THAT(open_tokenizer(folder.path().string())->description(),
                 StartsWith("SentencePiece"));
      REQUIRE(log.lines.size() == 1);
      CHECK_THAT(log.lines.front(),
                 ContainsSubstring(file.string() + " is used") && ContainsSubstring(why));
      CHECK(open_tokenizer_in(folder.path())->files().main.path == file);
      CHECK(log.lines.size() == 2);
      CHECK(tokenizer_identity(folder.path().string()) == tokenizer_identity(file.string()));
      CHECK(log.lines.size() == 2);  // who asks for an identity opens the tokenizer besides
      std::filesystem::remove(file);
    }
    folder.write("tokenizer.model", "no model either");
    try {
      open_tokenizer(folder.path().string());
      FAIL_CHECK("no error");
    } catch (const UserError& error) {  // of the first
      CHECK_THAT(error.what(), ContainsSubstring(why));
    }
  }
}

TEST_CASE("a readable tokenizer.json goes before its neighbours, without a word", "[tokenizer]") {
  const ScratchFolder folder;
  folder.write("tokenizer.model", read_bytes(golden + "spm.model"));
  const auto file = folder.write("tokenizer.json", read_bytes(golden + "structures/llama2.json"));
  const LogLines log;
  CHECK_THAT(open_tokenizer(folder.path().string())->description(),
             StartsWith("character-level BPE"));
  CHECK(open_tokenizer_in(folder.path())->files().main.path == file);
  CHECK(open_tokenizer_in(ScratchFolder().path()) == nullptr);
  CHECK(log.lines.empty());
}

TEST_CASE("other numbers of added tokens than the file's are told once", "[tokenizer]") {
  const ScratchFolder folder;
  const auto file = folder.write(
      "tokenizer.json",
      R"({"added_tokens": [{"id": 9, "content": "<x>"}, {"id": 8, "content": "<y>"},)"
      R"( {"id": 0, "content": "a"}], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  const LogLines log;
  const auto tokenizer = open_tokenizer(file.string());
  REQUIRE(log.lines.size() == 1);
  CHECK_THAT(log.lines.front(), ContainsSubstring("'<x>' is 1, not 9 as the file says"));
  CHECK(tokenizer->vocab_size() == 3);
}

TEST_CASE("a description says what byte-level BPE has no token for", "[tokenizer]") {
  const ScratchFolder folder;
  const std::string json =
      R"({"added_tokens": [], "pre_tokenizer": {"type": "ByteLevel", "use_regex": true},)"
      R"( "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", UNKNOWN"vocab":)"
      R"( {"a": 0, "b": 1, "<unk>": 2}, "merges": []}})";
  const auto described = [&](const std::string& unknown) {
    std::string text = json;
    text.replace(text.find("UNKNOWN"), 7, unknown);
    return open_tokenizer(folder.write("tokenizer.json", text).string())->description();
  };
  CHECK_THAT(described(""), ContainsSubstring("no token for 254 of the 256 bytes (a text loses"));
  CHECK_THAT(described(R"("unk_token": "<unk>", )"),
             ContainsSubstring("254 of the 256 bytes (a text gets the unknown token"));
}

TEST_CASE("a text with unknown characters needs the unknown token that the file names",
          "[tokenizer]") {
  const ScratchFolder folder;
  const auto tokenizer = open_tokenizer(
      folder
          .write(
              "tokenizer.json",
              R"({"model": {"type": "BPE", "unk_token": "<zz>", "vocab": {"a": 0}, "merges": []}})")
          .string());
  std::vector<std::int32_t> ids;
  tokenizer->encode("aa", ids);
  CHECK(ids == std::vector<std::int32_t>{0, 0});
  CHECK_THROWS_AS(tokenizer->encode("ab", ids), UserError);
}

// Which of the two 0.23.3 finds changes from one reading of the file to the next: of 100 readings
// 49 gave 1 for `<a>` and 51 gave 4 (Tokenizer.from_str and encode).
TEST_CASE("of added tokens with one normal form the lower number is found, and a line says so",
          "[tokenizer]") {
  const ScratchFolder folder;
  const auto file = folder.write(
      "tokenizer.json",
      R"({"normalizer": {"type": "Lowercase"}, "added_tokens": [)"
      R"({"id": 4, "content": "<a>", "normalized": true, "rstrip": true},)"
      R"( {"id": 1, "content": "<A>", "normalized": true}, {"id": 3, "content": "<Q>"}],)"
      R"( "model": {"type": "BPE", "vocab": {"b": 0, "<A>": 1, " ": 2, "<Q>": 3}, "merges": []}})");
  const LogLines log;
  const auto tokenizer = open_tokenizer(file.string());
  REQUIRE(log.lines.size() == 1);
  CHECK_THAT(log.lines.front(),
             ContainsSubstring("the added tokens '<A>' (1) and '<a>' (4) have the "
                               "same normal form '<a>'"));
  std::vector<std::int32_t> ids;
  tokenizer->encode("b<A> <a>b<Q>", ids);
  CHECK(ids == std::vector<std::int32_t>{0, 1, 2, 1, 0, 3});
}

// The library finds it between all bytes, and ends ("bad split") within the first character of two.
TEST_CASE("an added token of which the normalizer leaves nothing is refused", "[tokenizer]") {
  const ScratchFolder folder;
  for (const std::string normalizer :
       {R"({"type": "Strip", "strip_left": true, "strip_right": false})",
        R"({"type": "Replace", "pattern": {"Regex": "\\s"}, "content": ""})"}) {
    const std::string json = R"({"normalizer": )" + normalizer +
                             R"(, "added_tokens": [{"id": 1, "content": " ", "normalized": true}],)"
                             R"( "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})";
    const auto file = folder.write("tokenizer.json", json);
    CHECK_THROWS_WITH(
        open_tokenizer(file.string()),
        ContainsSubstring("an added token ' ' of which the normalizer leaves nothing"));
  }
}

TEST_CASE("merges go by numbers, where two characters have one, too", "[tokenizer]") {
  const ScratchFolder folder;
  const auto ids = [&](const std::string& model, const std::string& text) {
    const auto file =
        folder.write("t.json", R"({"added_tokens": [], "model": {"type": "BPE", )" + model + "}}");
    std::vector<std::int32_t> tokens;
    open_tokenizer(file.string())->encode(text, tokens);
    return tokens;
  };
  using Ids = std::vector<std::int32_t>;
  const std::string latin = R"("vocab": {"a": 1, "b": 1, "c": 2, "ac": 3}, "merges": ["a c"])";
  CHECK(ids(latin, "bc") == Ids{3});  // tokenizers 0.23.3
  CHECK(ids(latin, "abc") == Ids{1, 3});
  CHECK(ids(latin, "bbc") == Ids{1, 3});
  const std::string other =
      "\"vocab\": {\"x\": 0, \"\u00e9\": 0, \"y\": 2, \"xy\": 3, \"yx\": 4}, "
      "\"merges\": [\"x y\", \"y x\"]";
  CHECK(ids(other, "\u00e9y") == Ids{3});
  CHECK(ids(other, "y\u00e9") == Ids{4});
  CHECK(ids(other, "\u00e9y\u00e9") == Ids{3, 0});
}
