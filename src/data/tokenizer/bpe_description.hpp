// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unicode/unicode_text.hpp"

#include <fourfold/data/tokenizer_files.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::data::detail {

/// A text that is one token wherever it occurs, found before anything else is split.
struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  /// Looked for in the normalized text, in its own normal form; others are looked for first, in the
  /// text as it is.
  bool normalized = false;
  bool single_word = false;  ///< not beside a character of a word
  bool left_strip = false;   ///< takes the blanks before it
  bool right_strip = false;  ///< takes the blanks after it
  bool special = false;

  bool operator==(const AddedToken&) const = default;
};

/// A text that is looked for as it is, or as a regular expression.
struct Pattern {
  std::string text;
  bool is_expression = false;
};

/// One step of normalisation.
struct NormalizeStep {
  enum class Kind { form, replace, prepend, strip, lower_case };
  Kind kind = Kind::form;
  NormalForm form = NormalForm::nfc;
  Pattern pattern = {};      ///< replace
  std::string content = {};  ///< what replace and prepend put in
  bool left = false;         ///< strip
  bool right = false;        ///< strip
};

/// One step of pre-tokenisation, applied to every piece that the step before left.
struct SplitStep {
  enum class Kind {
    prefix_space,  ///< put a space in front of a piece that has none
    split,         ///< cut at the matches of a pattern
    metaspace,     ///< spaces to a mark, one in front, and perhaps a cut before each mark
  };
  /// What becomes of matches and of what stands between them.
  enum class Behavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };
  enum class Prepend { never, first, always };
  Kind kind = Kind::split;
  Pattern pattern = {};
  Behavior behavior = Behavior::isolated;
  bool inverted = false;  ///< what stands between matches counts as matches
  std::string mark = {};  ///< metaspace: one character
  Prepend prepend = Prepend::never;
  bool cuts = false;  ///< metaspace: begin a piece at each mark
};

/// One step of decoding, over the spelled tokens.
struct DecodeStep {
  enum class Kind { byte_level, byte_fallback, fuse, replace, strip, metaspace };
  Kind kind = Kind::byte_level;
  Pattern pattern = {};      ///< replace
  std::string content = {};  ///< replace: what is put in; strip, metaspace: one character
  std::size_t start = 0;     ///< strip: the most taken off at the beginning of a token
  std::size_t stop = 0;      ///< and at its end
  bool drops_first = false;  ///< metaspace: the mark of the first token is no blank
};

/// Everything that a BPE tokenizer file says, checked for being of a supported kind but not yet for
/// agreeing with itself.
struct BpeDescription {
  std::filesystem::path file;                               ///< for messages
  std::vector<std::pair<std::string, std::int32_t>> vocab;  ///< in the order of their spellings
  std::vector<std::pair<std::string, std::string>> merges;  ///< best first
  bool is_byte_level = false;  ///< tokens are spelled in the alphabet of bytes, words are bytes
  bool ignore_merges = false;  ///< a piece that is in the vocabulary is that token
  bool byte_fallback = false;  ///< an unknown character is its bytes, as tokens <0x00> to <0xFF>
  bool fuse_unknown = false;   ///< unknown characters in a row are one unknown token
  std::optional<std::string> unknown_token;  ///< stands for unknown characters; else they vanish
  std::vector<AddedToken> added;  ///< as listed in the file; their numbers are those of the file
  std::vector<NormalizeStep> normalization;
  std::vector<SplitStep> splitting;
  /// Nothing: a file without decoder, whose tokens are put together with spaces between.
  std::optional<std::vector<DecodeStep>> decoding;
};

/// Throws that a tokenizer file is damaged (data_corrupt).
[[noreturn]] void damaged(const std::filesystem::path& file, const std::string& problem);

/// The splitting expression of a ByteLevel pre-tokenizer (Radford et al. 2019): English
/// contractions, then runs of letters, of digits and of other characters, each with a blank before
/// it.
extern const char* const contractions_and_letters;

/// What the files of a tokenizer of Hugging Face say.
/// @pre files.kind is tokenizer_json or vocab_and_merges
/// @throws UserError: config when of a kind that is not supported, naming the component;
///   data_corrupt when it is not JSON, or neither of these
BpeDescription read_bpe(const TokenizerFiles& files);

}  // namespace fourfold::data::detail
