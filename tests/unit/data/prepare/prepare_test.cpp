// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "prepared.hpp"
#include "source_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/fatal_exit.hpp>
#include <fourfold/data/prepare.hpp>
#include <fourfold/data/token_record.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/io/own_file.hpp>
#include <fourfold/io/token_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::ExitCode;
using fourfold::data::InputFormat;
using namespace fourfold::test;

TEST_CASE("a link to a token file has the record of the file", "[prepare]") {
  const ScratchFolder folder;
  namespace fs = std::filesystem;
  fs::create_directories(folder / "far");
  prepare({.inputs = {folder.write("a.txt", "text")}, .output_prefix = folder / "far" / "tokens"});
  fs::create_symlink("far/tokens.bin", folder / "x.bin");
  fs::create_symlink("far/tokens.idx", folder / "x.idx");
  fs::create_symlink("x.bin", folder / "y.bin");
  fs::create_symlink("x.idx", folder / "y.idx");
  for (const char* const name : {"x.bin", "y.bin"}) {
    const auto record = fourfold::data::token_record_of(fourfold::io::TokenFile(folder / name));
    REQUIRE(record);
    CHECK(record->tokens == 4);
    CHECK(fourfold::data::token_record_path(folder / name) ==
          fs::canonical(folder / "far" / "tokens.json"));
  }
  folder.write("x.json", "{}");  // of another program: it is what lies beside
  CHECK_FALSE(fourfold::data::token_record_of(fourfold::io::TokenFile(folder / "x.bin")));
  fs::rename(folder / "far" / "tokens.json", folder / "x.json");  // beside a link on the way
  CHECK(fourfold::data::token_record_of(fourfold::io::TokenFile(folder / "y.bin")));
  fs::remove(folder / "x.json");
  CHECK(fourfold::data::token_record_path(folder / "y.bin") == folder / "y.json");
}

TEST_CASE("files become documents, in order, with their record", "[prepare]") {
  const ScratchFolder folder;
  PrepareOptions options{.inputs = {folder.write("b.txt", "second"), folder.write("a.txt", "a\0b"),
                                    folder.write("c.txt", "x")},
                         .output_prefix = folder / "out"};
  options.append_end_of_text = true;
  std::vector<PrepareProgress> seen;
  const auto parts = prepare(options, &seen);
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].bin == folder / "out.bin");
  CHECK(parts[0].documents == 3);
  CHECK(parts[0].tokens == 11);
  CHECK(documents_of(folder / "out") == Texts{"second$", "a$", "x$"});
  fourfold::data::check_part(parts[0], 257);
  CHECK_THROWS_AS(fourfold::data::check_part(parts[0], 256), fourfold::UserError);
  REQUIRE(seen.size() == 3);
  CHECK(seen.back().done_bytes == 8);
  CHECK(seen.back().total_bytes == 8);
  CHECK(seen.back().tokens == 11);
  const auto record = fourfold::data::read_token_record(folder / "out.bin");
  REQUIRE(record);
  CHECK(record->tokenizer == "byte");
  CHECK(record->vocab_size == 257);
  CHECK(record->end_of_text == 256);
  CHECK(record->end_of_text_appended);
  CHECK(record->tokens == 11);
  CHECK(record->documents == 3);
  CHECK(record->inputs.size() == 3);
}

TEST_CASE("separators are taken out and empty documents left out", "[prepare]") {
  const ScratchFolder folder;
  const PrepareOptions options{.inputs = {folder.write("a.txt", "==one====two==\n==")},
                               .output_prefix = folder / "out",
                               .document_separator = "=="};
  prepare(options);
  CHECK(documents_of(folder / "out") == Texts{"one", "two", "\n"});
}

TEST_CASE("every line of a .jsonl file is a document", "[prepare]") {
  const ScratchFolder folder;
  PrepareOptions options{.output_prefix = folder / "out"};
  options.inputs = {folder.write("a.jsonl",
                                 "{\"text\": \"one\\ntwo\", \"id\": 1}\r\n\n  \n{\"text\": "
                                 "\"\"}\n{\"id\": 2, \"text\": \"\\u00e9\"}")};
  prepare(options);
  CHECK(documents_of(folder / "out") == Texts{"one\ntwo", "\xC3\xA9"});
  for (const auto& [line, told] : {std::pair<std::string, std::string>{"{\"text\": 5}", ": has no"},
                                   {"[]", ": has no"},
                                   {"{\"txt\": \"x\"}", ": has no"},
                                   {"{\"text\": \"x\"", ", byte 13: is not JSON"},
                                   {"text", ", byte 2: is not JSON"},
                                   {"{\"text\": 1e999}", ", byte 10: 1e999 is a number"},
                                   {std::string(2000, '['), ": is nested too deep"}}) {
    CAPTURE(line);
    options.inputs = {folder.write("bad.jsonl", "{\"text\": \"good\"}\n" + line + "\n")};
    CHECK_THAT(error_of(ExitCode::data_corrupt, options),
               ContainsSubstring("bad.jsonl: line 2" + told));
  }
}

TEST_CASE("the last part of every input is held back", "[prepare]") {
  const ScratchFolder folder;
  PrepareOptions options{.output_prefix = folder / "out", .validation_fraction = 0.25};
  // A single document is cut after the first line end in its last quarter, here at byte 30 of 40 or
  // later.
  options.inputs = {
      folder.write("a.txt", "0123456789\n0123456789\n0123456789\n012345"),
      folder.write("b.jsonl",
                   "{\"text\": \"p\"}\n{\"text\": \"q\"}\n{\"text\": \"r\"}\n{\"text\": \"s\"}\n")};
  const auto parts = prepare(options);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].bin == folder / "out_train.bin");
  CHECK(parts[1].bin == folder / "out_val.bin");
  CHECK(documents_of(parts[0].bin) == Texts{"0123456789\n0123456789\n0123456789\n", "p", "q", "r"});
  CHECK(documents_of(parts[1].bin) == Texts{"012345", "s"});
  CHECK(fourfold::data::read_token_record(parts[1].bin)->tokens == 7);
}

TEST_CASE("what cannot be prepared leaves nothing behind", "[prepare]") {
  const ScratchFolder folder;
  const auto good = folder.write("good.txt", "text without line end");
  PrepareOptions options{.inputs = {good, folder / "missing.txt"}, .output_prefix = folder / "out"};
  CHECK_THAT(error_of(ExitCode::config, options),
             ContainsSubstring("missing.txt: cannot be opened"));
  options.inputs = {folder.write("empty.txt", "")};
  CHECK_THAT(error_of(ExitCode::data_corrupt, options), ContainsSubstring("empty.txt: is empty"));
  options.inputs = {folder / "empty.txt", folder.write("empty2.txt", "")};
  CHECK_THAT(error_of(ExitCode::data_corrupt, options),
             ContainsSubstring("empty.txt and all other inputs are empty"));
  options.inputs = {good};
  options.validation_fraction = 0.1;
  CHECK_THAT(error_of(ExitCode::config, options), ContainsSubstring("out_val.bin would be empty"));
  options.validation_fraction = 0;
  options.document_separator = "text without line end";
  CHECK_THAT(error_of(ExitCode::config, options), ContainsSubstring("out.bin would be empty"));
  options.document_separator = std::nullopt;
  options.output_prefix = folder / "good.txt/deep/out";
  CHECK_THAT(error_of(ExitCode::cannot_write, options),
             ContainsSubstring("good.txt: cannot be written (mkdir") &&
                 ContainsSubstring("choose another folder or name"));
  CHECK(files_in(folder) == 3);
}

TEST_CASE("end-of-text needs a tokenizer that has one", "[prepare]") {
  const ScratchFolder folder;
  std::string json =
      fourfold::harness::read_bytes(fourfold::harness::golden_folder() + "/tokenizers/llama3.json");
  json.replace(json.find("<|endoftext|>"), 13, "<|elsewhere|>");
  const PrepareOptions options{.inputs = {folder.write("a.txt", "x")},
                               .output_prefix = folder / "out",
                               .append_end_of_text = true};
  const auto tokenizer =
      fourfold::data::open_tokenizer(folder.write("tokenizer.json", json).string());
  CHECK_THROWS_WITH(fourfold::data::prepare(*tokenizer, options, [](const PrepareProgress&) {}),
                    ContainsSubstring("has no end-of-text token"));
}

TEST_CASE("a record comes back as it was written, and damage is named", "[token_record]") {
  const ScratchFolder folder;
  CHECK_FALSE(fourfold::data::read_token_record(folder / "x.bin"));
  const fourfold::data::TokenRecord record{.tokenizer = "/t/tokenizer.json",
                                           .tokenizer_identity = "0123",
                                           .tokenizer_description = "a \"tokenizer\"",
                                           .vocab_size = 7,
                                           .end_of_text = std::nullopt,
                                           .end_of_text_appended = false,
                                           .tokens = 5'000'000'000,
                                           .documents = 3,
                                           .tokens_digest = "4567",
                                           .index_digest = "89ab",
                                           .inputs = {"a", "b"}};
  folder.write("x.json", fourfold::data::to_json(record));
  CHECK(fourfold::data::read_token_record(folder / "x.bin") == record);
  const std::string ours = fourfold::data::to_json(record);
  for (const std::string& text :
       {ours.substr(0, 60), ours.substr(0, ours.size() - 3), replaced(ours, "5000000000", "-1"),
        replaced(ours, "5000000000", "1e30"), replaced(ours, "5000000000", "3.5"),
        replaced(ours, "5000000000", "18446744073709551615"), replaced(ours, "7,", "4294967303,"),
        replaced(ours, "7,", "0,"), replaced(ours, "\"end_of_text\": null", "\"end_of_text\": -1"),
        replaced(ours, "7,", "\"7\","), std::string("{\"format\": \"fourfold token record 1\"}")}) {
    CAPTURE(text);
    folder.write("x.json", text);
    CHECK_THROWS_AS(fourfold::data::read_token_record(folder / "x.bin"), fourfold::UserError);
  }
  for (const std::string text : {"", "{", "[]", "{}", "{\"tokenizer\": 1}", "not JSON at all"}) {
    folder.write("x.json", text);  // of another program
    CHECK_FALSE(fourfold::data::read_token_record(folder / "x.bin"));
  }
}

TEST_CASE("a record of an older version is read, and one of other tokens is refused",
          "[token_record]") {
  const ScratchFolder folder;
  PrepareOptions options{.inputs = {folder.write("a.txt", "one two")},
                         .output_prefix = folder / "out"};
  prepare(options);
  const std::string json = fourfold::harness::read_bytes(folder / "out.json");
  std::string older;
  for (std::size_t begin = 0; begin < json.size();) {
    const std::size_t end = json.find('\n', begin) + 1;
    const std::string line = json.substr(begin, end - begin);
    older += line.find("digest") == std::string::npos && line.find("identity") == std::string::npos
                 ? line
                 : "";
    begin = end;
  }
  folder.write("out.json", older);
  const fourfold::io::TokenFile file(folder / "out");
  const auto record = fourfold::data::token_record_of(file);
  REQUIRE(record);
  CHECK(record->tokenizer_identity.empty());
  CHECK(record->tokens_digest.empty());
  fourfold::data::verify_digests(file, *record);
  folder.write("out.json", replaced(older, "\"tokens\": 7", "\"tokens\": 8"));
  CHECK_THROWS_AS(fourfold::data::token_record_of(file), fourfold::UserError);
  folder.write("out.json", json);
  fourfold::data::verify_digests(file, *fourfold::data::token_record_of(file));
  // As many tokens, but others: found where all is read.
  options.inputs = {folder.write("b.txt", "ONE TWO")};
  options.output_prefix = folder / "other";
  prepare(options);
  std::filesystem::copy_file(folder / "other.bin", folder / "out.bin",
                             std::filesystem::copy_options::overwrite_existing);
  const fourfold::io::TokenFile mixed(folder / "out");
  CHECK_THROWS_AS(fourfold::data::verify_digests(mixed, *fourfold::data::token_record_of(mixed)),
                  fourfold::UserError);
}

TEST_CASE("a record names what made the tokens, whatever becomes of the files", "[token_record]") {
  const ScratchFolder folder;
  const std::string golden = fourfold::harness::golden_folder() + "/tokenizers/gpt2/";
  const std::string merges = fourfold::harness::read_bytes(golden + "merges.txt");
  for (const std::string swapped : {"merges.txt", "words"}) {
    CAPTURE(swapped);
    const auto words = folder.write("words", fourfold::harness::read_bytes(golden + "vocab.json"));
    folder.write("merges.txt", merges);
    const auto tokenizer = fourfold::data::open_tokenizer(words.string());
    fourfold::data::prepare(
        *tokenizer,
        {.inputs = {folder.write("a.txt", "the words")}, .output_prefix = folder / swapped},
        [&](const PrepareProgress&) {
          folder.write("new", merges.substr(0, merges.rfind('\n', merges.size() - 2) + 1));
          std::filesystem::rename(folder / "new", folder / swapped);
        });
    const auto record = fourfold::data::read_token_record(folder / (swapped + ".bin"));
    REQUIRE(record);
    CHECK(record->tokenizer == words.string());
    CHECK(record->tokenizer_identity == fourfold::data::tokenizer_identity(golden + "vocab.json"));
  }
}

TEST_CASE("a folder's tokenizer that cannot be used is told once for all parts", "[prepare]") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "model");
  folder.write("model/tokenizer.json", "{}");
  const auto model = folder.write(
      "model/tokenizer.model",
      fourfold::harness::read_bytes(fourfold::harness::golden_folder() + "/tokenizers/spm.model"));
  const fourfold::harness::LogLines log;
  const auto parts =
      fourfold::data::prepare(*fourfold::data::open_tokenizer((folder / "model").string()),
                              {.inputs = {folder.write("a.txt", "one\ntwo\nthree\n")},
                               .output_prefix = folder / "out",
                               .validation_fraction = 0.5},
                              [](const PrepareProgress&) {});
  CHECK(parts.size() == 2);
  CHECK(log.lines.size() == 1);
  CHECK(fourfold::data::read_token_record(parts[1].bin)->tokenizer == model.string());
}

TEST_CASE("what comes to an output's name while the text is read is not replaced", "[prepare]") {
  for (const char* const name : {"out.bin", "out.idx", "out.json"}) {
    CAPTURE(name);
    const ScratchFolder folder;
    const PrepareOptions options{.inputs = {folder.write("a.txt", "text")},
                                 .output_prefix = folder / "out"};
    const auto tokenizer = fourfold::data::make_byte_tokenizer();
    CHECK_THROWS_WITH(
        fourfold::data::prepare(*tokenizer, options,
                                [&](const PrepareProgress&) { folder.write(name, "precious"); }),
        ContainsSubstring(std::string(name) + ": is there already"));
    CHECK(fourfold::harness::read_bytes(folder / name) == "precious");
    CHECK(fourfold::harness::files_below(folder.path()).size() == 2);
  }
}

TEST_CASE("two preparations of one name leave the files of one of them", "[prepare]") {
  const ScratchFolder folder;
  const auto prepared_by_child = [&](const char* name, int letter) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto text = folder.write(name, std::string(100, static_cast<char>(letter)));
      try {
        for (int round = 0; round < 100; ++round) {
          prepare({.inputs = {text}, .output_prefix = folder / "out"});
        }
      } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s\n", failure.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    return child;
  };
  REQUIRE(prepared_by_child("a.txt", 'a') > 0);
  REQUIRE(prepared_by_child("b.txt", 'b') > 0);
  int refused = 0;
  for (int running = 2; running > 0;) {
    int status = 0;
    if (::waitpid(-1, &status, WNOHANG) > 0) {
      CHECK(status == 0);
      --running;
    }
    ::usleep(20'000);  // the others get their turns
    const fourfold::FileDescriptor between = fourfold::io::lock_folder(folder.path());
    if (std::filesystem::exists(folder / "out.idx")) {
      const fourfold::io::TokenFile file(folder / "out.bin");
      try {
        fourfold::data::verify_digests(file, *fourfold::data::token_record_of(file));
      } catch (const fourfold::UserError&) {
        ++refused;
      }
    }
  }
  CHECK(refused == 0);
}

TEST_CASE("a signal leaves the older files or the newer ones, at every moment", "[prepare]") {
  const ScratchFolder folder;
  const auto text = folder.write("a.txt", "text of some length");
  prepare({.inputs = {text}, .output_prefix = folder / "out"});
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    const fourfold::HeldSignals until_they_are_caught;
    const pid_t child = ::fork();
    if (child == 0) {
      fourfold::clean_up_on_signals(false);
      sigset_t none;
      sigemptyset(&none);
      ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
      for (;;) {
        prepare({.inputs = {text}, .output_prefix = folder / "out"});
      }
    }
    ::usleep(2000 + 700 * (round % 13));
    ::kill(child, SIGTERM);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    const fourfold::io::TokenFile file(folder / "out.bin");
    fourfold::data::verify_digests(file, *fourfold::data::token_record_of(file));
    REQUIRE(fourfold::harness::files_below(folder.path()).size() == 4);  // and the text
  }
}

TEST_CASE("an output's folder that another process holds is waited for a while", "[prepare]") {
  const ScratchFolder folder;
  // As flock(1) does for what it starts.
  const fourfold::FileDescriptor held = fourfold::io::lock_folder(folder.path());
  prepare({.inputs = {folder.write("a.txt", "text")}, .output_prefix = folder / "out"});
  CHECK(documents_of(folder / "out") == Texts{"text"});
}

TEST_CASE("no input is replaced, and nothing that another program has made", "[prepare]") {
  const ScratchFolder folder;
  namespace fs = std::filesystem;
  const auto refused = [&](const std::vector<fs::path>& inputs, const char* prefix,
                           double validation_fraction = 0) {
    const auto before = fourfold::harness::files_below(folder.path());
    const std::string message =
        error_of(ExitCode::config, {.inputs = inputs,
                                    .output_prefix = folder / prefix,
                                    .validation_fraction = validation_fraction});
    CHECK(fourfold::harness::files_below(folder.path()) == before);
    return message;
  };
  const fs::path text = folder.write("c.json", "{\"text\": \"hello there\"}\n");
  CHECK_THAT(refused({text}, "c"), ContainsSubstring("c.json: would be replaced, and is an input"));
  CHECK_THAT(refused({folder / "." / "c.json"}, "c"), ContainsSubstring("is an input"));
  fs::create_symlink("c.json", folder / "link");
  fs::create_hard_link(text, folder / "hard");
  CHECK_THAT(refused({folder / "link"}, "c"), ContainsSubstring("is an input"));
  CHECK_THAT(refused({folder / "hard"}, "c"), ContainsSubstring("is an input"));
  fs::create_symlink("c.json", folder / "d.json");
  CHECK_THAT(refused({text}, "d"), ContainsSubstring("is an input"));
  const fs::path one = folder.write("t_val.bin", "some text of mine|and more|and more");
  CHECK_THAT(refused({one}, "t", 0.4), ContainsSubstring("is an input"));
  const fs::path other = folder.write("other.txt", "text|text");
  CHECK_THAT(refused({other}, "c"), ContainsSubstring("c.json: is there already, and not made by"));
  folder.write("m.bin", "tokens of Megatron");
  folder.write("m.idx", std::string("MMIDIDX\0\0", 9));
  CHECK_THAT(refused({other}, "m"), ContainsSubstring("m.bin: is there already"));
  fs::remove(folder / "m.bin");
  CHECK_THAT(refused({other}, "m"), ContainsSubstring("m.idx: is there already"));
  fs::create_symlink("nowhere", folder / "n.bin");
  CHECK_THAT(refused({other}, "n"), ContainsSubstring("n.bin: is a symbolic link"));
  fs::create_symlink("nowhere", folder / "o.json");
  CHECK_THAT(refused({other}, "o"), ContainsSubstring("o.json: is a symbolic link"));
  // Our own, a broken set of ours, and empty files are replaced.
  const PrepareOptions again{.inputs = {other}, .output_prefix = folder / "e"};
  for (const char* name : {"e.json", "e.bin", "e.idx"}) {
    folder.write(name, "");
  }
  prepare(again);
  fs::remove(folder / "e.idx");
  prepare(again);
  prepare(again);
  CHECK(documents_of(folder / "e") == Texts{"text|text"});
}
