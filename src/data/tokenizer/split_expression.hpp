// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/bpe_description.hpp"
#include "tokenizer/piece.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace fourfold::data::detail {

/// Rewrites a regular expression as tokenizer files write it (the Ruby syntax of the Oniguruma
/// library) into one that means the same to PCRE2 under UTF | UCP: \s becomes Unicode's White_Space
/// spelled out (PCRE2's has U+180E in it), \d becomes \p{Nd}, script names are made exact, {n}? and
/// {n,m}+ repeat what was repeated before. What the two read differently or only one knows is
/// refused, as case folding to several characters.
/// @param source  the file it comes from, for messages
/// @throws UserError (config) naming the construct
std::string to_pcre2(std::string_view expression, std::string_view source);

/// What the Whitespace pre-tokenizer of the `tokenizers` library keeps: words, and runs of what is
/// neither of words nor blank.
extern const std::string whitespace_expression;

/// A compiled splitting expression (PCRE2, just-in-time compiled where the platform can).
/// Move-only; one thread.
class SplitExpression {
 public:
  /// @param source  the file it comes from, for messages
  /// @throws UserError (config) when it cannot be compiled, is outside what to_pcre2 knows, or can
  /// match nothing
  SplitExpression(const Pattern& pattern, std::string_view source);
  SplitExpression(SplitExpression&&) noexcept;
  SplitExpression& operator=(SplitExpression&&) noexcept;
  ~SplitExpression();

  struct Match {
    std::size_t begin;
    std::size_t end;
  };
  /// The first match at or after `from`. @pre text is valid UTF-8, `from` is at the start of a
  /// character or the end
  std::optional<Match> find(std::string_view text, std::size_t from);

  /// Puts the piece with `content` for each match into `replaced` and returns that; where nothing
  /// matches the piece, with `replaced` as it was. The content comes of the character that its
  /// match ends with, as in the library. @pre text is valid UTF-8
  Piece replace(Piece piece, std::string_view content, std::string& replaced);

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace fourfold::data::detail
