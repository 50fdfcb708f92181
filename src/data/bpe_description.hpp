// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::data::detail {

/// A text that is one token wherever it occurs, found before anything else is split.
struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  /// Tokens of the first round are looked for in the whole text, the others in what is left between
  /// them. (In a tokenizer.json the first round are those with "normalized": false.)
  bool first_round = true;
};

/// One step of pre-tokenisation, applied to every piece that the step before left.
struct SplitStep {
  enum class Kind {
    prefix_space,  ///< put a space in front of a piece that has none
    expression,    ///< cut at the matches of a regular expression
    literal,       ///< cut at the occurrences of a text
  };
  enum class Keep {
    all,      ///< matches and what lies between them
    between,  ///< only what lies between matches
    matches,  ///< only the matches
  };
  Kind kind = Kind::expression;
  Keep keep = Keep::all;
  std::string pattern;
};

/// Everything a byte-level BPE tokenizer file says, checked for being of the supported kind but not
/// yet for agreeing with itself.
struct BpeDescription {
  std::filesystem::path file;                               ///< for messages
  std::vector<std::pair<std::string, std::int32_t>> vocab;  ///< tokens spelled in the byte alphabet
  std::vector<std::pair<std::string, std::string>> merges;  ///< best first
  bool ignore_merges = false;  ///< a piece that is in the vocabulary is that token
  std::vector<AddedToken> added;
  std::vector<SplitStep> steps;
};

/// GPT-2's splitting expression, which a ByteLevel pre-tokenizer applies.
extern const char* const gpt2_expression;

/// @throws UserError as open_tokenizer_json says
BpeDescription read_tokenizer_json(const std::filesystem::path& file);
/// @throws UserError as open_vocab_and_merges says
BpeDescription read_vocab_and_merges(const std::filesystem::path& vocab_json,
                                     const std::filesystem::path& merges_txt);

}  // namespace fourfold::data::detail
