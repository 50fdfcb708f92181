// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "unicode/unicode_text.hpp"

#include <fourfold/base/json_text.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/data/tokenizer_files.hpp>
#include <fourfold/io/fingerprint.hpp>
#include <fourfold/io/mapped_file.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <span>
#include <string_view>

namespace fourfold::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t longest_file_bytes = std::uint64_t{1} << 30;

/// A SentencePiece model is a message of protocol buffers, which has bytes that no text has; JSON
/// that can be a tokenizer begins with a brace.
TokenizerKind kind_of(const FileBytes& file) {
  const std::string_view text = file.bytes;
  const std::string_view beginning = text.substr(0, 4096);
  const bool has_control = std::any_of(beginning.begin(), beginning.end(), [](unsigned char c) {
    return c < 0x20 && c != '\t' && c != '\n' && c != '\r';
  });
  const std::size_t first = beginning.find_first_not_of(" \t\r\n");
  const bool is_blank = first == std::string_view::npos;
  if (!has_control && (is_blank ? file.path.extension() == ".json" : beginning[first] == '{')) {
    return is_json_of_numbers<nlohmann::json>(text) ? TokenizerKind::vocab_and_merges
                                                    : TokenizerKind::tokenizer_json;
  }
  // The beginning may end inside a character.
  const std::string_view rest = beginning.substr(detail::valid_utf8_prefix(beginning));
  if (has_control || rest.size() != detail::begun_utf8_suffix(rest)) {
    return TokenizerKind::sentencepiece;
  }
  throw UserError(
      ExitCode::config,
      format_message("{}: is no tokenizer by its content (known are tokenizer.json, vocab.json "
                     "with merges.txt beside it, and models of SentencePiece); name another file",
                     file.path.string()));
}

fs::path merges_beside(const fs::path& vocabulary) {
  std::string name = vocabulary.stem().string();
  const std::size_t place = name.rfind("vocab");
  name = place == std::string::npos ? "merges" : name.replace(place, 5, "merges");
  return vocabulary.parent_path() / (name + ".txt");
}

FileBytes read(const fs::path& path) {
  return {path, io::text_of_file(path, longest_file_bytes)};
}

void add(const FileBytes& file, io::Fingerprint& content) {
  content.add(std::ssize(file.bytes));
  content.add(std::as_bytes(std::span(file.bytes)));
}

}  // namespace

std::string TokenizerFiles::name() const {
  return kind == TokenizerKind::bytes ? "byte" : fs::absolute(main.path).string();
}

std::string TokenizerFiles::identity() const {
  if (kind == TokenizerKind::bytes ||
      (kind == TokenizerKind::tokenizer_json && main.bytes == byte_tokenizer_json())) {
    return "byte";
  }
  io::Fingerprint content;
  add(main, content);
  if (merges) {
    add(*merges, content);
  }
  return content.str();
}

TokenizerFiles read_tokenizer_files(const fs::path& file) {
  TokenizerFiles files{.main = read(file)};
  files.kind = kind_of(files.main);
  if (files.kind == TokenizerKind::vocab_and_merges) {
    files.merges = read(merges_beside(file));
  }
  return files;
}

}  // namespace fourfold::data
