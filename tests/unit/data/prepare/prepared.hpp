// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// For tests of `fourfold data prepare`: prepares with the byte tokenizer, and reads what came of
/// it.
#pragma once

#include "log_lines.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/data/prepare.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/io/token_file.hpp>

#include <catch2/catch_test_macros.hpp>

#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

namespace fourfold::test {

using data::PreparedPart;
using data::PrepareOptions;
using data::PrepareProgress;
using harness::ScratchFolder;

inline std::vector<PreparedPart> prepare(const PrepareOptions& options,
                                         std::vector<PrepareProgress>* seen = nullptr) {
  const auto tokenizer = fourfold::data::make_byte_tokenizer();
  return fourfold::data::prepare(*tokenizer, options, [&](const PrepareProgress& progress) {
    if (seen != nullptr) {
      seen->push_back(progress);
    }
  });
}

/// The documents of a token file, decoded; end-of-text shown as "$".
inline std::vector<std::string> documents_of(const std::filesystem::path& bin) {
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

inline std::string error_of(ExitCode code, const PrepareOptions& options) {
  try {
    prepare(options);
  } catch (const fourfold::UserError& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "";
}

inline std::ptrdiff_t files_in(const ScratchFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()),
                       std::filesystem::directory_iterator());
}

inline std::string replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

inline std::string all_of(const fourfold::harness::LogLines& log) {
  std::string text;
  for (const std::string& line : log.lines) {
    text += line + '\n';
  }
  return text;
}

using Texts = std::vector<std::string>;

}  // namespace fourfold::test
