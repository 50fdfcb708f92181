// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/data/tokenizer.hpp>

#include <fmt/format.h>

namespace fourfold::data {
namespace {

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

std::unique_ptr<Tokenizer> open_file(const std::filesystem::path& file) {
  if (file.extension() == ".model") {
    return open_sentencepiece(file);
  }
  if (file.filename() == "vocab.json") {
    return open_vocab_and_merges(file, file.parent_path() / "merges.txt");
  }
  if (file.extension() == ".json") {
    return open_tokenizer_json(file);
  }
  throw UserError(ExitCode::config,
                  fmt::format("{}: is no tokenizer by its name (known are *.model, vocab.json with "
                              "merges.txt beside it, and other *.json); rename it or name another",
                              file.string()));
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& named) {
  if (named == "byte") {
    return make_byte_tokenizer();
  }
  const std::filesystem::path path(named);
  if (is_file(path)) {
    return open_file(path);
  }
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    throw UserError(ExitCode::config,
                    fmt::format("{}: there is no such tokenizer (known are 'byte', a file or a "
                                "folder); check the name",
                                named));
  }
  for (const char* name : {"tokenizer.json", "vocab.json", "tokenizer.model"}) {
    if (is_file(path / name)) {
      return open_file(path / name);
    }
  }
  throw UserError(
      ExitCode::config,
      fmt::format("{}: holds no tokenizer.json, vocab.json or tokenizer.model; name the "
                  "file itself",
                  named));
}

}  // namespace fourfold::data
