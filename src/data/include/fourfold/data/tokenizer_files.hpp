// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/regular_file.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace fourfold::data {

/// What the files of a tokenizer are.
enum class TokenizerKind : std::uint8_t {
  bytes,             ///< token = byte; no file
  tokenizer_json,    ///< one file, of the `tokenizers` library
  vocab_and_merges,  ///< byte-level BPE: an object of tokens and numbers, and a text of merges
  sentencepiece,     ///< one file, a model of SentencePiece
};

/// What belongs to a tokenizer of Hugging Face beside the file with its tokens.
inline constexpr std::array tokenizer_side_files{"tokenizer_config.json", "special_tokens_map.json",
                                                 "added_tokens.json", "chat_template.jinja"};

/// All files that make a tokenizer, read once: what encodes, what is recorded and what is exported
/// come from these bytes, whatever becomes of the files. Paths are as they were named.
struct TokenizerFiles {
  TokenizerKind kind = TokenizerKind::bytes;
  FileBytes main = {};                             ///< empty for bytes
  std::optional<FileBytes> merges = std::nullopt;  ///< of vocab_and_merges alone

  /// "byte", or the absolute path of the main file: open_tokenizer() takes it in any folder.
  std::string name() const;
  /// What makes two tokenizers the same, wherever their files are: "byte", also of the file that
  /// `ckpt export` writes for it, or a digest of all their bytes (32 hexadecimal digits).
  std::string identity() const;
};

/// Reads a tokenizer's files. Its content tells what the file is, not its name. To a vocabulary
/// belong the merges beside it: x-merges.txt to x-vocab.json, and merges.txt to a name without
/// "vocab". Whether the tokenizer can be used is not looked at.
/// @throws UserError: config when the file or its merges are missing, or it is no tokenizer by its
///   content; data_corrupt when one cannot be read or has more than 1 GiB
TokenizerFiles read_tokenizer_files(const std::filesystem::path& file);

}  // namespace fourfold::data
