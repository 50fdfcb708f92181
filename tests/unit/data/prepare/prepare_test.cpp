// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "log_lines.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/data/prepare.hpp>
#include <fourfold/data/token_record.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/io/token_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::ExitCode;
using fourfold::data::InputFormat;
using fourfold::data::PreparedPart;
using fourfold::data::PrepareOptions;
using fourfold::data::PrepareProgress;
using fourfold::harness::ScratchFolder;

namespace {

std::vector<PreparedPart> prepare(const PrepareOptions& options,
                                  std::vector<PrepareProgress>* seen = nullptr) {
  const auto tokenizer = fourfold::data::make_byte_tokenizer();
  return fourfold::data::prepare(*tokenizer, options, [&](const PrepareProgress& progress) {
    if (seen != nullptr) {
      seen->push_back(progress);
    }
  });
}

/// The documents of a token file, decoded; end-of-text shown as "$".
std::vector<std::string> documents_of(const std::filesystem::path& bin) {
  const fourfold::io::TokenFile file(bin);
  file.verify_index();
  std::vector<std::string> documents;
  for (std::int64_t i = 0; i < file.documents(); ++i) {
    const auto range = file.document(i);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(range.count));
    file.read(range.begin, ids);
    std::string& text = documents.emplace_back();
    for (const std::int32_t id : ids) {
      text.push_back(id == 256 ? '$' : static_cast<char>(id));
    }
  }
  return documents;
}

std::string error_of(ExitCode code, const PrepareOptions& options) {
  try {
    prepare(options);
  } catch (const fourfold::UserError& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "";
}

std::ptrdiff_t files_in(const ScratchFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()),
                       std::filesystem::directory_iterator());
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

std::string all_of(const fourfold::harness::LogLines& log) {
  std::string text;
  for (const std::string& line : log.lines) {
    text += line + '\n';
  }
  return text;
}

using Texts = std::vector<std::string>;

}  // namespace

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

TEST_CASE("JSON lines are known by their content, whatever the file is called", "[prepare]") {
  const ScratchFolder folder;
  const std::string lines = "\xef\xbb\xbf\n {\"id\": 1, \"text\": \"one\"}\n{\"text\": \"two\"}";
  for (const char* name : {"a.ndjson", "a.JSONL", "a.json", "a", "a.txt", "a.jsonl.1"}) {
    CAPTURE(name);
    PrepareOptions options{.inputs = {folder.write(name, lines)}, .output_prefix = folder / "out"};
    prepare(options);
    CHECK(documents_of(folder / "out") == Texts{"one", "two"});
    options.format = InputFormat::text;
    prepare(options);
    CHECK(documents_of(folder / "out") == Texts{lines});
    options.format = InputFormat::json_lines;
    options.inputs = {folder.write(name, "plain")};
    CHECK_THAT(error_of(ExitCode::data_corrupt, options), ContainsSubstring("is not JSON"));
  }
  PrepareOptions other_key{.inputs = {folder.write("b.json", "{\"content\": \"x\"}\n")},
                           .output_prefix = folder / "other"};
  CHECK_THAT(error_of(ExitCode::data_corrupt, other_key),
             ContainsSubstring("line 1: has no text under the key"));
}

TEST_CASE("JSON of another form is refused, and text that looks like it is text", "[prepare]") {
  const ScratchFolder folder;
  PrepareOptions options{.output_prefix = folder / "out"};
  for (const std::string json :
       {"[{\"text\": \"one\"}, {\"text\": \"two\"}]", "[\n  {\"text\": \"one\"}\n]\n",
        "{\n  \"text\": \"one\"\n}\n", "[\"one\", \"two\"]", "[1, [2, 3]]", "[]",
        "[{\"text\": \"cut"
        "\", \"id\": 1}, {\"te",
        "{\n \"version\": 1, \"model\": {\"vocab\": }}"}) {
    CAPTURE(json);
    options.inputs = {folder.write("a.json", json)};
    CHECK_THAT(error_of(ExitCode::config, options),
               ContainsSubstring("is JSON, but not one object"));
    options.format = InputFormat::text;
    prepare(options);
    CHECK(documents_of(folder / "out") == Texts{json});
    options.format = InputFormat::automatic;
  }
  for (const std::string text :
       {"[1] Knuth, The Art\n[2] more", "[section]\nkey = 1\n", "{curly} text", "[[wiki]] page",
        "{\"half\" of it", "[link](there)", "\"quoted\"", "42", "true\n", "<html>"}) {
    CAPTURE(text);
    options.inputs = {folder.write("a.json", text)};
    prepare(options);
    CHECK(documents_of(folder / "out") == Texts{text});
  }
}

TEST_CASE("lists and texts on lines, and JSON sequences, are JSON of another form", "[prepare]") {
  const ScratchFolder folder;
  for (const std::string text :
       {"[\"first prompt\", \"its completion\"]\n[\"second\", \"another\"]\n",
        "\"first text\"\n\n\"second text\"", "[1, 2, 3]\n[4, NaN]\n",
        "\xef\xbb\xbf [\"a\"]\r\n [\"b\"]\r\n", "\x1e{\"text\": \"a\"}\n\x1e{\"text\": \"b\"}\n",
        "\x1e[1, 2]\n"}) {
    CAPTURE(text);
    PrepareOptions options{.inputs = {folder.write("in", text)}, .output_prefix = folder / "o"};
    CHECK_THAT(error_of(ExitCode::config, options),
               ContainsSubstring("is JSON, but not one object"));
    options.format = InputFormat::text;
    CHECK(prepare(options)[0].documents == 1);
  }
  // Prose that has one line of the kind, or begins with one.
  for (const std::string text :
       {"\"Hello there.\"\nsaid she.\n", "\"One line.\"", "[see below]\n[and above]\n",
        "\"He said \"no\".\"\n\"She did not.\"\n", "[1] Adams 1999\n[2] Baker 2001\n",
        "\x1e by itself\n"}) {
    CAPTURE(text);
    const PrepareOptions options{.inputs = {folder.write("in", text)},
                                 .output_prefix = folder / "o"};
    CHECK(prepare(options)[0].documents == 1);
  }
}

TEST_CASE("JSON lines are read as Python writes them", "[prepare]") {
  const ScratchFolder folder;
  const std::string lines =
      "{\"text\": \"one\", \"score\": NaN}\n{\"text\": \"two\", \"score\": -Infinity}\n"
      "{\"score\": 1e999, \"text\": \"three\"}\n{\"text\": \"a \\ud83d b\"}\n";
  for (const char* name : {"in.jsonl", "in.json"}) {
    const PrepareOptions options{.inputs = {folder.write(name, lines)},
                                 .output_prefix = folder / "o"};
    const fourfold::harness::LogLines log;
    CHECK(prepare(options)[0].documents == 4);
    CHECK(documents_of(folder / "o") == Texts{"one", "two", "three", "a \xef\xbf\xbd b"});
    CHECK_THAT(all_of(log), ContainsSubstring("line 4: 1 halves of surrogate pairs"));
  }
  const PrepareOptions number{.inputs = {folder.write("in.jsonl", "{\"text\": NaN}\n")},
                              .output_prefix = folder / "o"};
  CHECK_THAT(error_of(ExitCode::data_corrupt, number), ContainsSubstring("line 1"));
}

TEST_CASE("what is not UTF-8 is told of, or refused where it is much of the text", "[prepare]") {
  const ScratchFolder folder;
  const auto tokenizer =
      fourfold::data::open_tokenizer(FOURFOLD_GOLDEN_DIR "/tokenizers/llama3.json");
  const auto with = [&](const std::string& text, InputFormat format) {
    const PrepareOptions options{
        .inputs = {folder.write("in", text)}, .format = format, .output_prefix = folder / "o"};
    return fourfold::data::prepare(*tokenizer, options, [](const PrepareProgress&) {});
  };
  std::string binary;
  for (unsigned i = 0, state = 7; i < 5000; ++i) {
    state = state * 1103515245 + 12345;
    binary.push_back(static_cast<char>(std::max(1U, (state >> 16) & 0xffU)));
  }
  const std::string koi8 = "\xf0\xd2\xc9\xd7\xc5\xd4, \xcd\xc9\xd2!\n";
  for (const std::string& text : {binary, koi8}) {
    CHECK_THROWS_WITH(with(text, InputFormat::automatic),
                      ContainsSubstring("are not UTF-8 (another encoding, or no text)"));
    const fourfold::harness::LogLines log;
    CHECK(with(text, InputFormat::text)[0].tokens > 0);
    CHECK_THAT(all_of(log), ContainsSubstring("bytes of the text are not UTF-8"));
  }
  const fourfold::harness::LogLines log;
  const std::string latin1 = "Ein sch\xf6ner Text, in dem nur hier und da ein Umlaut steht.\n";
  CHECK(with(latin1, InputFormat::automatic)[0].tokens > 0);
  CHECK_THAT(all_of(log), ContainsSubstring("1 bytes of the text are not UTF-8"));
  // A character that the end of what is looked at cuts in two is whole.
  CHECK(with(std::string((1 << 16) - 1, 'a') + "\xc3\xa9", InputFormat::automatic)[0].tokens > 0);
}

TEST_CASE("no link is replaced, and a tokenizer that no record can name is refused", "[prepare]") {
  const ScratchFolder folder;
  const PrepareOptions options{.inputs = {folder.write("in.txt", "text")},
                               .output_prefix = folder / "o"};
  prepare(options);
  std::filesystem::create_directory(folder / "far");
  std::filesystem::rename(folder / "o.bin", folder / "far/o.bin");
  std::filesystem::create_symlink("far/o.bin", folder / "o.bin");
  CHECK_THAT(error_of(ExitCode::config, options), ContainsSubstring("o.bin: is a symbolic link"));
  CHECK(std::filesystem::is_symlink(folder / "o.bin"));
  std::filesystem::create_directory(folder / "caf\xe9");
  std::filesystem::copy_file(FOURFOLD_GOLDEN_DIR "/tokenizers/llama3.json",
                             folder / "caf\xe9/t.json");
  const auto tokenizer = fourfold::data::open_tokenizer((folder / "caf\xe9/t.json").string());
  CHECK_THROWS_WITH(fourfold::data::prepare(
                        *tokenizer, {.inputs = options.inputs, .output_prefix = folder / "new/o"},
                        [](const PrepareProgress&) {}),
                    ContainsSubstring("its path is not UTF-8"));
  CHECK_FALSE(std::filesystem::exists(folder / "new"));
}

TEST_CASE("what is not text is refused by its kind, whatever it is called", "[prepare]") {
  using namespace std::string_literals;
  const ScratchFolder folder;
  const std::string tar = std::string(257, 'n') + "ustar";
  const std::vector<std::pair<std::string, std::string>> kinds{
      {"\x1f\x8b\x08"s, "gzip"},
      {"\x28\xb5\x2f\xfd\x04"s, "zstd"},
      {"\xfd\x37zXZ\0\0"s, "xz"},
      {"BZh91AY&SY"s, "bzip2"},
      {"\x04\x22\x4d\x18"s, "lz4"},
      {"PK\x03\x04\x14"s, "zip"},
      {"7z\xbc\xaf\x27\x1c"s, "7z"},
      {tar, "tar"},
      {"PAR1\x15"s, "Parquet"},
      {"ARROW1\0\0"s, "Arrow file"},
      {"\xff\xff\xff\xff\x78\3\0\0"s, "Arrow stream"},
      {"\x7f"
       "ELF\2\1\1"s,
       "ELF"},
      {"\x93NUMPY\1\0"s, "NumPy"},
      {"%PDF-1.7\n"s, "PDF"},
      {"WARC/1.0\r\nWARC-Type: response\r\n"s, "WARC"},
      {"WARC/0.17\r\n"s, "WARC"},
      {"\x89PNG\r\n\x1a\n"s, "PNG"},
      {"\xff\xd8\xff\xe0"s, "JPEG"},
      {"GIF89a"s, "GIF"},
      {"\x89HDF\r\n\x1a\n"s, "HDF5"},
      {"SQLite format 3\0"s, "SQLite"},
      {"\x80\4\x95"s, "pickle"},
      {"\xff\xfeo\0n\0e\0"s, "UTF-16"},
      {"\xfe\xff\0o\0n\0e"s, "UTF-16"},
      {"o\0n\0e\0 \0t\0w\0o\0"s, "UTF-16"},
      {"\xff\xfe\0\0o\0\0\0"s, "UTF-32"},
      {"MMIDIDX\0\0\1"s, "index of a token file"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"s, "Git LFS"},
      {"text with a NUL \0 in it"s, "NUL bytes"},
  };
  for (const auto& [bytes, kind] : kinds) {
    for (const char* name : {"a.txt", "a.jsonl"}) {
      CAPTURE(kind, name);
      PrepareOptions options{.inputs = {folder.write(name, bytes)},
                             .output_prefix = folder / "out"};
      const std::string message = error_of(ExitCode::config, options);
      CHECK_THAT(message, ContainsSubstring(kind) && ContainsSubstring("--format=text"));
      CHECK_FALSE(std::filesystem::exists(folder / "out.bin"));
    }
  }
  // Documents with NUL between them are not binary; and who insists gets the bytes.
  PrepareOptions options{.inputs = {folder.write("a.txt", "one\0two"s)},
                         .output_prefix = folder / "out",
                         .document_separator = "\0"s};
  prepare(options);
  CHECK(documents_of(folder / "out") == Texts{"one", "two"});
  options = {.inputs = {folder.write("a.gz", "\x1f\x8b\0"s)},
             .format = InputFormat::text,
             .output_prefix = folder / "out"};
  prepare(options);
  CHECK(documents_of(folder / "out") == Texts{"\x1f\x8b\0"s});
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
  std::string json = fourfold::harness::read_bytes(FOURFOLD_GOLDEN_DIR "/tokenizers/llama3.json");
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
  const std::string golden = FOURFOLD_GOLDEN_DIR "/tokenizers/gpt2/";
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
  const auto model =
      folder.write("model/tokenizer.model",
                   fourfold::harness::read_bytes(FOURFOLD_GOLDEN_DIR "/tokenizers/spm.model"));
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
