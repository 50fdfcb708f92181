// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"
#include "source_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/data/prepare.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/token_settings.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace fs = std::filesystem;
using namespace fourfold;
using Catch::Matchers::ContainsSubstring;
using harness::ScratchFolder;

namespace {

const std::string golden = fourfold::harness::golden_folder() + "/tokenizers/";

/// Token files in a folder, and the run files that name them.
class TokenRun {
 public:
  TokenRun() {
    prepare("bytes", "byte");
    prepare("llama", golden + "llama3.json");
  }
  void prepare(const std::string& prefix, const std::string& tokenizer) const {
    data::prepare(*data::open_tokenizer(tokenizer),
                  {.inputs = {scratch_.write("text", "It was the best of times.\n")},
                   .output_prefix = scratch_ / prefix},
                  [](const data::PrepareProgress&) {});
  }
  runfile::EffectiveConfig load(const std::string& files, const std::string& more = "",
                                const std::vector<std::string>& overrides = {}) const {
    std::string list;
    for (std::size_t begin = 0; begin < files.size();) {
      const std::size_t end = std::min(files.find(' ', begin), files.size());
      list += "\"" + (scratch_ / files.substr(begin, end - begin)).string() + "\", ";
      begin = end + 1;
    }
    const auto file = scratch_.write("run.toml", "[data]\ntrain = [" + list + "]\n" + more);
    return train::load_run(file, overrides);
  }
  std::string refusal(const std::string& files, const std::string& more = "") const {
    try {
      load(files, more);
    } catch (const UserError& error) {
      CHECK(error.code() == ExitCode::config);
      return error.what();
    }
    return "";
  }
  const ScratchFolder& folder() const { return scratch_; }

 private:
  ScratchFolder scratch_;
};

std::int64_t llama_vocab() {
  return data::open_tokenizer(golden + "llama3.json")->vocab_size();
}

}  // namespace

TEST_CASE("vocabulary and tokenizer are the token files' own where nobody writes them",
          "[token_settings]") {
  const TokenRun run;
  const auto bytes = run.load("bytes.bin");
  CHECK(bytes.config.model.vocab == 320);  // 257 up to a multiple of 64
  CHECK(bytes.config.data.tokenizer == "byte");
  CHECK_THAT(bytes.origins.at("model.vocab").str(),
             ContainsSubstring("257 tokens of") && ContainsSubstring("bytes.json"));
  CHECK(bytes.warnings.empty());
  CHECK(bytes.notes.empty());
  const auto llama = run.load("llama");
  CHECK(llama.config.model.vocab == (llama_vocab() + 63) / 64 * 64);
  CHECK(llama.config.data.tokenizer == golden + "llama3.json");
  CHECK_THAT(llama.origins.at("data.tokenizer").str(), ContainsSubstring("llama.json"));
  CHECK_THAT(runfile::print_run_config(llama),
             ContainsSubstring("# from " + run.folder().path().string()));
}

TEST_CASE("a vocabulary that is written is compared with the records", "[token_settings]") {
  const TokenRun run;
  CHECK(run.load("bytes", "[model]\nvocab = 257\n").warnings.empty());
  CHECK(run.load("bytes", "[model]\nvocab = 269\n").warnings.empty());  // less than 5 %
  CHECK(run.load("bytes", "[model]\nvocab = 320\n").warnings.empty());  // what would be taken
  for (const std::string vocab : {"321", "50257"}) {
    const auto large = run.load("bytes", "[model]\nvocab = " + vocab + "\n");
    REQUIRE(large.warnings.size() == 1);
    CHECK_THAT(large.warnings[0], ContainsSubstring("model.vocab = " + vocab) &&
                                      ContainsSubstring("run.toml:4") && ContainsSubstring("257") &&
                                      ContainsSubstring("bytes.json"));
  }
  CHECK(run.load("bytes", "[model]\npreset = \"gpt2-124m\"\n").config.model.vocab == 50257);
  CHECK(run.load("bytes", "[model]\npreset = \"gpt2-124m\"\n").warnings.size() == 1);
  CHECK_THAT(run.refusal("bytes", "[model]\nvocab = 256\n"),
             ContainsSubstring("run.toml:4:1: model.vocab = 256") &&
                 ContainsSubstring("257 tokens") && ContainsSubstring("bytes.json"));
  CHECK_THAT(run.refusal("llama", "[model]\nvocab = 300\n"), ContainsSubstring("llama.json"));
  CHECK(run.load("bytes", "", {"model.vocab=1000"}).config.model.vocab == 1000);
}

TEST_CASE("tokens of two tokenizers are refused, unless allowed", "[token_settings]") {
  const TokenRun run;
  for (const std::string files : {"bytes llama", "llama.bin bytes.idx"}) {
    CHECK_THAT(run.refusal(files), ContainsSubstring("bytes.json") &&
                                       ContainsSubstring("llama.json") &&
                                       ContainsSubstring("data.allow_mixed_tokenizers = true"));
  }
  const std::string validation = "validation = [\"" + (run.folder() / "llama").string() + "\"]\n";
  CHECK_THAT(run.refusal("bytes", validation), ContainsSubstring("different tokenizers"));
  const auto mixed = run.load("bytes llama", "allow_mixed_tokenizers = true\n");
  CHECK(mixed.config.model.vocab == (llama_vocab() + 63) / 64 * 64);
  CHECK(mixed.warnings.size() == 1);
  // The same tokenizer under another path is the same.
  fs::copy_file(golden + "llama3.json", run.folder() / "copy.json");
  run.prepare("again", (run.folder() / "copy.json").string());
  CHECK(run.load("llama again").warnings.empty());
}

TEST_CASE("a file that data names twice is told of, and refused where a pattern does it",
          "[token_settings]") {
  const TokenRun run;
  run.prepare("book_train", "byte");
  run.prepare("book_val", "byte");
  fs::create_symlink(run.folder() / "book_val.bin", run.folder() / "held.bin");
  fs::create_symlink(run.folder() / "book_val.idx", run.folder() / "held.idx");
  const auto validation = [&](const std::string& name) {
    return "validation = [\"" + (run.folder() / name).string() + "\"]\n";
  };
  CHECK(run.load("book_train", validation("book_val")).warnings.empty());
  CHECK(run.load("book_train*", validation("book_val")).warnings.empty());
  for (const char* name : {"book_val", "book_val.bin", "book_val.idx", "held", "book_v*.bin"}) {
    CAPTURE(name);
    CHECK_THAT(run.refusal("book*", validation(name)),
               ContainsSubstring("run.toml:2") && ContainsSubstring("book*\" catches ") &&
                   ContainsSubstring("book_val.bin, which data.validation names"));
    const auto written = run.load("book_val book_train", validation(name));  // on purpose
    REQUIRE(written.warnings.size() == 1);
    CHECK_THAT(written.warnings.front(),
               ContainsSubstring("book_val.bin is in data.train and in data.validation"));
  }
  CHECK(run.load("book*", validation("book*")).warnings.size() == 2);
  const auto twice = run.load("book_train book_t*.bin", validation("bytes"));
  REQUIRE(twice.warnings.size() == 1);
  CHECK_THAT(twice.warnings.front(),
             ContainsSubstring("book_train.bin is named twice in data.train"));
}

TEST_CASE("one vocabulary with other merges is another tokenizer, whatever its name",
          "[token_settings]") {
  const std::string merges = harness::read_bytes(golden + "gpt2/merges.txt");
  for (const char* name : {"vocab.json", "words", "tokenizer.json"}) {
    const TokenRun run;
    const auto words = run.folder().write(name, harness::read_bytes(golden + "gpt2/vocab.json"));
    run.folder().write("merges.txt", merges);
    run.prepare("all", words.string());
    CHECK(run.load("all").config.data.tokenizer == words);
    run.folder().write("merges.txt", merges.substr(0, merges.rfind('\n', merges.size() - 2) + 1));
    CHECK_THAT(run.refusal("all"), ContainsSubstring("did not make the token files, as it is now"));
    run.prepare("fewer", words.string());
    CHECK_THAT(run.refusal("all fewer"), ContainsSubstring("files of different tokenizers"));
  }
}

TEST_CASE("a tokenizer that is written has to be the token files' own", "[token_settings]") {
  const TokenRun run;
  CHECK_THAT(run.refusal("llama", "tokenizer = \"byte\"\n"),
             ContainsSubstring("data.tokenizer = \"byte\"") && ContainsSubstring("run.toml:3") &&
                 ContainsSubstring("llama.json"));
  CHECK_THAT(run.refusal("bytes", "tokenizer = \"" + golden + "gpt4o.json\"\n"),
             ContainsSubstring("did not make the token files"));
  CHECK(run.load("llama", "tokenizer = \"byte\"\nallow_mixed_tokenizers = true\n")
            .config.data.tokenizer == "byte");
  fs::copy_file(golden + "llama3.json", run.folder() / "copy.json");
  const std::string copy = (run.folder() / "copy.json").string();
  CHECK(run.load("llama", "tokenizer = \"" + copy + "\"\n").config.data.tokenizer == copy);
  // Its file has become another one since.
  run.prepare("copied", copy);
  fs::copy_file(golden + "gpt4o.json", copy, fs::copy_options::overwrite_existing);
  CHECK_THAT(run.refusal("copied"),
             ContainsSubstring("did not make the token files, as it is now"));
}

TEST_CASE("files without a record are used, name no tokenizer, and a line says so",
          "[token_settings]") {
  const TokenRun run;
  fs::remove(run.folder() / "bytes.json");
  const auto bare = run.load("bytes");
  CHECK(bare.config.model.vocab == 50257);
  CHECK(bare.config.data.tokenizer == "none");
  CHECK(run.load("bytes", "tokenizer = \"byte\"\n").config.data.tokenizer == "byte");
  REQUIRE(bare.notes.size() == 1);
  CHECK_THAT(bare.notes[0], ContainsSubstring("bytes.bin") && ContainsSubstring("no record"));
  CHECK(run.load("bytes llama").config.model.vocab == (llama_vocab() + 63) / 64 * 64);
  const auto missing = run.load("nowhere");
  CHECK(missing.config.model.vocab == 50257);
  REQUIRE(missing.notes.size() == 1);
  CHECK_THAT(missing.notes[0], ContainsSubstring("nowhere"));
  CHECK(run.load("nowhere*.bin", "[model]\nvocab = 64\n").notes.empty());
}

TEST_CASE("a record of an older version is compared by the tokenizer's files", "[token_settings]") {
  const TokenRun run;
  for (const char* name : {"bytes.json", "llama.json"}) {
    std::string json = harness::read_bytes(run.folder() / name);
    const std::size_t begin = json.find("  \"tokenizer_identity\"");
    json.erase(begin, json.find('\n', begin) + 1 - begin);
    run.folder().write(name, json);
  }
  CHECK(run.load("bytes").config.model.vocab == 320);
  CHECK_THAT(run.refusal("bytes llama"), ContainsSubstring("different tokenizers"));
}
