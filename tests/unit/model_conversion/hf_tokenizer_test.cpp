// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"
#include "scratch_folder.hpp"
#include "source_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/model_conversion/export.hpp>
#include <fourfold/model_conversion/hf_tokenizer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::FileBytes;
using fourfold::data::open_tokenizer;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;
using fourfold::model_conversion::hf_tokenizer;
using fourfold::model_conversion::HfTokenizer;

namespace {

const std::string golden = fourfold::harness::golden_folder() + "/tokenizers/";

std::string contents(const HfTokenizer& tokenizer, const std::string& name) {
  const auto found =
      std::ranges::find(tokenizer.files, std::filesystem::path(name), &FileBytes::path);
  return found == tokenizer.files.end() ? "(missing)" : found->bytes;
}

std::vector<std::int32_t> ids_of(fourfold::data::Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::int32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

}  // namespace

TEST_CASE("the byte tokenizer becomes a tokenizer.json with the same tokens") {
  const HfTokenizer bytes = hf_tokenizer(*open_tokenizer("byte"), 128);
  CHECK(bytes.special.bos == 256);
  CHECK(bytes.special.eos == std::vector<std::int32_t>{256});
  CHECK(bytes.vocab_size == 257);
  const ScratchFolder scratch;
  const auto written =
      open_tokenizer(scratch.write("tokenizer.json", contents(bytes, "tokenizer.json")).string());
  const auto ours = open_tokenizer("byte");
  CHECK(written->vocab_size() == 257);
  CHECK(written->end_of_text() == 256);
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
  }
  std::string nasty = read_bytes(golden + "nasty.txt");
  // As everywhere in transformers, text that spells a special token is that token.
  const std::string end_of_text = "<|endoftext|>";
  CHECK(ids_of(*written, end_of_text) == std::vector<std::int32_t>{256});
  for (std::size_t at = nasty.find(end_of_text); at != std::string::npos;
       at = nasty.find(end_of_text)) {
    nasty.erase(at, end_of_text.size());
  }
  for (const std::string& text :
       {all, std::string("It's 12  dogs\n\n\tand \xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80"), nasty}) {
    CHECK(ids_of(*written, text) == ids_of(*ours, text));
  }
  CHECK_THAT(contents(bytes, "tokenizer_config.json"),
             ContainsSubstring(R"("eos_token": "<|endoftext|>")") &&
                 ContainsSubstring(R"("model_max_length": 128)"));
}

TEST_CASE("bytes are spelled as GPT-2 spells them") {
  using fourfold::data::spelling_of_byte;
  CHECK(spelling_of_byte('A') == "A");
  CHECK(spelling_of_byte(0) == "\u0100");
  CHECK(spelling_of_byte('\n') == "\u010a");
  CHECK(spelling_of_byte(' ') == "\u0120");
  CHECK(spelling_of_byte(0x7f) == "\u0121");
  CHECK(spelling_of_byte(0xa1) == "\u00a1");
  CHECK(spelling_of_byte(0xad) == "\u0143");
  CHECK(spelling_of_byte(0xff) == "\u00ff");
}

TEST_CASE("a tokenizer.json goes as it is, with what lies beside it") {
  const ScratchFolder scratch;
  const std::string text = read_bytes(golden + "gpt2.json");
  scratch.write("tokenizer.json", text);
  const auto ours = open_tokenizer(scratch.path().string());
  const HfTokenizer made = hf_tokenizer(*open_tokenizer(scratch.path().string()), 64);
  CHECK(contents(made, "tokenizer.json") == text);
  REQUIRE(ours->end_of_text());
  CHECK(made.special.bos == ours->end_of_text());
  CHECK(made.special.eos == std::vector<std::int32_t>{*ours->end_of_text()});
  CHECK_THAT(contents(made, "tokenizer_config.json"),
             ContainsSubstring("PreTrainedTokenizerFast") && ContainsSubstring("<|endoftext|>"));
  // Its own configuration, as a link, and with another token at which generation ends.
  const std::string config =
      R"({"tokenizer_class":"GPT2Tokenizer","eos_token":{"content":"a"},"bos_token":"b","x":NaN})";
  std::filesystem::create_symlink(scratch.write("config-blob", config),
                                  scratch / "tokenizer_config.json");
  scratch.write("chat_template.jinja", "{{ x }}");
  const HfTokenizer own = hf_tokenizer(*open_tokenizer((scratch / "tokenizer.json").string()), 64);
  CHECK(contents(own, "tokenizer_config.json") ==  // of another class other tokens may come
        R"({"tokenizer_class":"PreTrainedTokenizerFast","eos_token":{"content":"a"},)"
        R"("bos_token":"b","x":NaN})");
  CHECK_THAT(own.notes.front(), ContainsSubstring("GPT2Tokenizer in yours"));
  CHECK(contents(own, "chat_template.jinja") == "{{ x }}");
  CHECK(own.special.bos == ids_of(*ours, "b").front());
  CHECK(own.special.eos ==
        std::vector<std::int32_t>{ids_of(*ours, "a").front(), *ours->end_of_text()});
  for (const char* const unusual : {R"({"tokenizer_class" : "A\u0042"})",
                                    R"({"a":{"tokenizer_class":1},"tokenizer_class":"B"})",
                                    R"({"tokenizer_class":"B","tokenizer_class":"C"})"}) {
    CAPTURE(unusual);
    scratch.write("config-blob", unusual);
    const HfTokenizer kept = hf_tokenizer(*open_tokenizer(scratch.path().string()), 64);
    CHECK(contents(kept, "tokenizer_config.json") == unusual);
    CHECK_THAT(kept.notes.front(), ContainsSubstring("may make other tokens"));
  }
  scratch.write("config-blob", R"({"eos_token": )");
  CHECK_THROWS_WITH(hf_tokenizer(*open_tokenizer(scratch.path().string()), 64),
                    ContainsSubstring("tokenizer_config.json: line 1, byte 15: is not JSON"));
}

TEST_CASE("what lies beside a tokenizer goes along only where its readers can read it") {
  const ScratchFolder scratch;
  scratch.write("tokenizer.json", read_bytes(golden + "gpt2.json"));
  const auto export_of = [&] { return hf_tokenizer(*open_tokenizer(scratch.path().string()), 64); };
  CHECK(export_of().notes.empty());
  for (const char* const name : {"added_tokens.json", "special_tokens_map.json"}) {
    scratch.write(name, "{}");
    CHECK(contents(export_of(), name) == "{}");
    for (const char* const text : {"not json", "[1, 2]", "{\"a\": 1", ""}) {
      CAPTURE(name, text);
      scratch.write(name, text);
      CHECK_THROWS_WITH(export_of(), ContainsSubstring(name));
    }
    std::filesystem::remove(scratch / name);
  }
  // As a cache of Hugging Face has them that was fetched in part.
  for (const char* const name : {"tokenizer_config.json", "chat_template.jinja"}) {
    std::filesystem::create_symlink("../blobs/0123", scratch / name);
    CHECK_THROWS_WITH(export_of(), ContainsSubstring(name) && ContainsSubstring("No such file"));
    std::filesystem::remove(scratch / name);
  }
}

TEST_CASE("a tokenizer without an end of text says that generation does not stop") {
  const ScratchFolder scratch;
  scratch.write("tokenizer.json",
                R"({"version":"1.0","added_tokens":[],"normalizer":null,"pre_tokenizer":null,)"
                R"("decoder":null,"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},)"
                R"("merges":["a b"]}})");
  const HfTokenizer made = hf_tokenizer(*open_tokenizer(scratch.path().string()), 64);
  CHECK(made.special.eos.empty());
  REQUIRE(made.notes.size() == 1);
  CHECK_THAT(made.notes.front(), ContainsSubstring("eos_token_id is left open"));
}

TEST_CASE("other kinds of tokenizers go under the names that transformers looks for") {
  const HfTokenizer pair = hf_tokenizer(*open_tokenizer(golden + "gpt2"), 64);
  CHECK(contents(pair, "vocab.json") == read_bytes(golden + "gpt2/vocab.json"));
  CHECK(contents(pair, "merges.txt") == read_bytes(golden + "gpt2/merges.txt"));
  CHECK_THAT(contents(pair, "tokenizer_config.json"), ContainsSubstring("GPT2Tokenizer"));
  // Under any name, with a stranger's merges.txt beside.
  const ScratchFolder scratch;
  for (const auto& [vocab, merges] :
       {std::pair{"gpt2-vocab.json", "gpt2-merges.txt"}, {"words", "merges.txt"}}) {
    CAPTURE(vocab);
    scratch.write("merges.txt", "a b\n");
    scratch.write(merges, read_bytes(golden + "gpt2/merges.txt"));
    const auto file = scratch.write(vocab, read_bytes(golden + "gpt2/vocab.json"));
    const HfTokenizer named = hf_tokenizer(*open_tokenizer(file.string()), 64);
    CHECK(contents(named, "vocab.json") == read_bytes(golden + "gpt2/vocab.json"));
    CHECK(contents(named, "merges.txt") == read_bytes(golden + "gpt2/merges.txt"));
  }
  const HfTokenizer pieces = hf_tokenizer(*open_tokenizer(golden + "spm.model"), 64);
  CHECK(contents(pieces, "tokenizer.model") == read_bytes(golden + "spm.model"));
  CHECK_THAT(contents(pieces, "tokenizer_config.json"), ContainsSubstring("LlamaTokenizer"));
  REQUIRE(pieces.notes.size() == 1);
  CHECK_THAT(pieces.notes.front(), ContainsSubstring("does not normalize"));
}

TEST_CASE("a SentencePiece model that is no BPE is not given to a class that reads it as one") {
  using fourfold::model_conversion::is_sentencepiece_bpe;
  const std::string bpe = read_bytes(golden + "spm.model");
  CHECK(is_sentencepiece_bpe(bpe));
  CHECK_FALSE(is_sentencepiece_bpe(""));
  CHECK_FALSE(is_sentencepiece_bpe("not a protocol buffer"));
  // trainer_spec.model_type is the varint of field 3: 2 for BPE, 1 for unigram.
  std::string unigram = bpe;
  for (std::size_t at = bpe.find("\x18\x02"); at != bpe.npos && is_sentencepiece_bpe(unigram);
       at = bpe.find("\x18\x02", at + 1)) {
    unigram = bpe;
    unigram[at + 1] = '\x01';
  }
  REQUIRE_FALSE(is_sentencepiece_bpe(unigram));
  for (std::size_t cut = 0; cut < 400; ++cut) {  // whatever it is, it is read within its bounds
    static_cast<void>(is_sentencepiece_bpe(std::string_view(bpe).substr(0, cut)));
  }
  const ScratchFolder scratch;
  const HfTokenizer pieces =
      hf_tokenizer(*open_tokenizer(scratch.write("spm.model", unigram).string()), 64);
  REQUIRE(pieces.files.size() == 1);
  CHECK(contents(pieces, "sentencepiece.model") == unigram);
  REQUIRE(pieces.notes.size() == 1);
  CHECK_THAT(pieces.notes.front(), ContainsSubstring("AutoTokenizer finds none"));
}

TEST_CASE("an export notes what transformers makes otherwise of it") {
  const auto notes_of = [](fourfold::model::Architecture config, bool qkv_bias,
                           const std::string& file, std::int64_t vocab_multiple = 0) {
    config.attention.qkv_bias = qkv_bias;
    return fourfold::model_conversion::plan_hf_export(
               config, {.vocab_multiple = vocab_multiple},
               hf_tokenizer(*open_tokenizer(golden + file), 64))
        .notes;
  };
  const auto llama = fourfold::harness::llama_model();
  CHECK(notes_of(llama, false, "llama3.json").empty());
  // As AutoTokenizer of transformers 5.24 does: Qwen's tokens are those of the file, Llama's are
  // not.
  CHECK(notes_of(llama, true, "structures/qwen2.5.json").empty());
  for (const char* file : {"llama3.json", "structures/llama2.json"}) {
    REQUIRE(notes_of(llama, true, file).size() == 1);
    CHECK_THAT(notes_of(llama, true, file).front(), ContainsSubstring("splits text as Qwen 2"));
  }
  REQUIRE(notes_of(llama, false, "llama3.json", 1 << 20).size() == 1);
  CHECK_THAT(notes_of(llama, false, "llama3.json", 1 << 20).front(),
             ContainsSubstring(std::to_string((1 << 20) - llama.vocab) + " rows of zeros"));
}

TEST_CASE("config.json and generation_config.json say where texts end") {
  HfTokenizer tokenizer{.files = {{"tokenizer.json", "{}"}}, .special = {}, .notes = {}};
  const auto text_of = [&](const std::string& name) {
    const auto plan =
        fourfold::model_conversion::plan_hf_export(fourfold::harness::llama_model(), {}, tokenizer);
    const auto found = std::ranges::find(plan.texts, std::filesystem::path(name), &FileBytes::path);
    return found == plan.texts.end() ? "(missing)" : found->bytes;
  };
  CHECK_THAT(text_of("config.json"), ContainsSubstring(R"("eos_token_id": null)"));
  CHECK(text_of("generation_config.json") == "(missing)");
  tokenizer.special = {.bos = 3, .eos = {7}};
  for (const char* file : {"config.json", "generation_config.json"}) {
    CHECK_THAT(text_of(file), ContainsSubstring(R"("eos_token_id": 7)") &&
                                  ContainsSubstring(R"("bos_token_id": 3)"));
  }
  tokenizer.special.eos = {9, 7};
  CHECK_THAT(text_of("generation_config.json"),
             ContainsSubstring("\"eos_token_id\": [\n    9,\n    7\n  ]"));
  CHECK(text_of("tokenizer.json") == "{}");
}
