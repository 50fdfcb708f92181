// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "prepared.hpp"
#include "source_folder.hpp"

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
using namespace fourfold::test;

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

TEST_CASE("JSON lines whose first ones are damaged are no text", "[prepare]") {
  const ScratchFolder folder;
  const std::string good = "{\"text\": \"one\"}\n{\"id\": 2, \"text\": \"two\"}\n";
  for (const std::string first :
       {"{\"text\": \"a\tb\"}\n", "{\"text\": \"caf\xe9\"}\n", "{\"text\": \"cut\n",
        "{\"text\": \"a\\xb\"}\n", "# made today\n", "\n\n{\"text\": 'single'}\n",
        "{\"text\": \"a\tb\"}\n{\"text\": \"c\td\"}\n"}) {
    for (const char* const name : {"in.json", "in.ndjson", "in"}) {
      CAPTURE(first, name);
      const PrepareOptions options{.inputs = {folder.write(name, first + good)},
                                   .output_prefix = folder / "o"};
      CHECK_THAT(error_of(ExitCode::data_corrupt, options), ContainsSubstring("JSON lines"));
    }
  }
  // Prose about them.
  const std::string prose =
      "Each line is an object:\n\n{\"text\": \"one\"}\n\nand so on,\nand so on.\n";
  const PrepareOptions options{.inputs = {folder.write("in", prose)},
                               .output_prefix = folder / "o"};
  prepare(options);
  CHECK(documents_of(folder / "o") == Texts{prose});
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
  const auto tokenizer = fourfold::data::open_tokenizer(fourfold::harness::golden_folder() +
                                                        "/tokenizers/llama3.json");
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
  std::filesystem::copy_file(fourfold::harness::golden_folder() + "/tokenizers/llama3.json",
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
