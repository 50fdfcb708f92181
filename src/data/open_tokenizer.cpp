// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "utf8.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/io/mapped_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace fourfold::data {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

enum class Kind { json, sentencepiece, other_text };

/// What a file is by its first bytes. A SentencePiece model is a message of protocol buffers, which
/// has bytes that no text has; JSON that can be a tokenizer begins with a brace.
Kind kind_of(const fs::path& file) {
  const io::MappedFile mapped(file);
  constexpr std::size_t most_bytes = 4096;
  const std::string_view beginning(reinterpret_cast<const char*>(mapped.bytes().data()),
                                   std::min(mapped.bytes().size(), most_bytes));
  const bool has_control = std::any_of(beginning.begin(), beginning.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r';
  });
  const std::size_t first = beginning.find_first_not_of(" \t\r\n");
  const bool is_blank = first == std::string_view::npos;
  if (!has_control && (is_blank ? file.extension() == ".json" : beginning[first] == '{')) {
    return Kind::json;
  }
  // The beginning may end inside a character.
  const std::string_view rest = beginning.substr(detail::valid_utf8_prefix(beginning));
  const bool is_text = !has_control && rest.size() == detail::begun_utf8_suffix(rest);
  return is_text ? Kind::other_text : Kind::sentencepiece;
}

std::unique_ptr<Tokenizer> open_file(const fs::path& file) {
  switch (kind_of(file)) {
    case Kind::json:
      return open_bpe(file);
    case Kind::sentencepiece:
      return open_sentencepiece(file);
    case Kind::other_text:
      break;
  }
  throw UserError(
      ExitCode::config,
      fmt::format("{}: is no tokenizer by its content (known are tokenizer.json, vocab.json with "
                  "merges.txt beside it, and models of SentencePiece); name another file",
                  file.string()));
}

/// The tokenizer files of a folder, in the order in which they are tried.
std::vector<fs::path> candidates_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const char* name : {"tokenizer.json", "vocab.json", "tokenizer.model"}) {
    if (is_file(folder / name)) {
      files.push_back(folder / name);
    }
  }
  const auto named = std::ssize(files);
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".model" && is_file(entry.path()) &&
        std::find(files.begin(), files.end(), entry.path()) == files.end()) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin() + named, files.end());
  return files;
}

struct Found {
  fs::path file;
  std::unique_ptr<Tokenizer> tokenizer;
};

/// The first tokenizer of a folder that can be used; nothing when there is none to try.
std::optional<Found> find_in_folder(const fs::path& folder) {
  std::optional<UserError> first_error;
  for (const fs::path& file : candidates_in(folder)) {
    try {
      Found found{file, open_file(file)};
      if (first_error) {
        log::warning(fmt::format("{} is used as the tokenizer, since another cannot be: {}",
                                 printable(file.string()), first_error->what()));
      }
      return found;
    } catch (const UserError& error) {
      if (!first_error) {
        first_error = error;
      }
    }
  }
  if (first_error) {
    throw *first_error;
  }
  return std::nullopt;
}

Found find(const std::string& named) {
  if (is_file(named)) {
    return {named, open_file(named)};
  }
  std::error_code ignored;
  if (fs::is_directory(named, ignored)) {
    if (auto found = find_in_folder(named)) {
      return std::move(*found);
    }
    throw UserError(ExitCode::config,
                    fmt::format("{}: holds no tokenizer.json, vocab.json or tokenizer.model; name "
                                "the file itself",
                                named));
  }
  throw UserError(ExitCode::config,
                  fmt::format("{}: there is no such tokenizer (known are 'byte', a file or a "
                              "folder); check the name",
                              named));
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& named) {
  return named == "byte" ? make_byte_tokenizer() : find(named).tokenizer;
}

std::optional<fs::path> tokenizer_in(const fs::path& folder) {
  const auto found = find_in_folder(folder);
  return found ? std::optional(found->file) : std::nullopt;
}

}  // namespace fourfold::data
