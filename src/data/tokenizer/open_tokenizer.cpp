// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/folder_claims.hpp"
#include "tokenizer/tokenizer_kinds.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::data {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// @param warnings  what who works with it should be told is added
std::unique_ptr<Tokenizer> open_file(const fs::path& file, std::vector<std::string>& warnings) {
  TokenizerFiles files = read_tokenizer_files(file);
  if (files.kind == TokenizerKind::vocab_and_merges) {
    detail::refuse_other_claims_beside(files);
  }
  auto tokenizer = files.kind == TokenizerKind::sentencepiece
                       ? detail::make_sentencepiece(std::move(files))
                       : detail::make_bpe(std::move(files), warnings);
  if (tokenizer->files().kind == TokenizerKind::tokenizer_json) {
    std::string told =
        detail::told_of_tokens_beside(tokenizer->files(), [&](const std::string& text) {
          std::vector<std::int32_t> tokens;
          tokenizer->encode(text, tokens);
          return tokens.size() == 1;
        });
    if (!told.empty()) {
      warnings.push_back(std::move(told));
    }
  }
  return tokenizer;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

/// The tokenizer files of a folder, in the order in which they are tried. What has the name of one
/// and cannot be read (a folder, a link to nowhere) is tried, too: it is told of then.
std::vector<fs::path> candidates_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const char* name : {"tokenizer.json", "vocab.json", "tokenizer.model"}) {
    if (is_there(folder / name)) {
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

/// The first tokenizer of a folder that can be used; none when there is none to try.
/// @param warnings  those of this one take their place
std::unique_ptr<Tokenizer> open_first_in(const fs::path& folder,
                                         std::vector<std::string>& warnings) {
  std::optional<UserError> first_error;
  for (const fs::path& file : candidates_in(folder)) {
    try {
      warnings.clear();
      auto tokenizer = open_file(file, warnings);
      if (first_error) {
        warnings.push_back(
            format_message("{} is used as the tokenizer, since another cannot be: {}",
                           printable(file.string()), first_error->what()));
      }
      return tokenizer;
    } catch (const UserError& error) {
      if (!first_error) {
        first_error = error;
      }
    }
  }
  if (first_error) {
    throw *first_error;
  }
  return nullptr;
}

std::unique_ptr<Tokenizer> open_named(const std::string& named,
                                      std::vector<std::string>& warnings) {
  if (named == "byte") {
    return make_byte_tokenizer();
  }
  if (is_file(named)) {
    return open_file(named, warnings);
  }
  std::error_code ignored;
  if (fs::is_directory(named, ignored)) {
    if (auto tokenizer = open_first_in(named, warnings)) {
      return tokenizer;
    }
    throw UserError(
        ExitCode::config,
        format_message("{}: holds no tokenizer.json, vocab.json or tokenizer.model; name "
                       "the file itself",
                       named));
  }
  throw UserError(ExitCode::config,
                  format_message("{}: there is no such tokenizer (known are 'byte', a file or a "
                                 "folder); check the name",
                                 named));
}

template <class Open>
std::unique_ptr<Tokenizer> with_warnings_told(const Open& open) {
  std::vector<std::string> warnings;
  auto tokenizer = open(warnings);
  for (const std::string& warning : warnings) {
    log::warning(warning);
  }
  return tokenizer;
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& named) {
  return with_warnings_told([&](auto& warnings) { return open_named(named, warnings); });
}

std::unique_ptr<Tokenizer> open_tokenizer_in(const fs::path& folder) {
  return with_warnings_told([&](auto& warnings) { return open_first_in(folder, warnings); });
}

std::string tokenizer_identity(const std::string& named) {
  std::vector<std::string> untold;
  return named != "byte" && is_file(named) ? read_tokenizer_files(named).identity()
                                           : open_named(named, untold)->identity();
}

}  // namespace fourfold::data
