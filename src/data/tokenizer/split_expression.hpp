// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/bpe_description.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace fourfold::data::detail {

/// A part of a text on its way to words.
struct Piece {
  std::string_view text;
  /// So many bytes at its beginning came of the first character of the whole text. The library
  /// asks for the place that a piece had in the text as it was given, and that is 0 for these.
  std::size_t from_first = 0;

  /// @pre begin + size <= text.size()
  Piece part(std::size_t begin, std::size_t size = std::string_view::npos) const {
    const std::string_view kept = text.substr(begin, size);
    const std::size_t left = from_first > begin ? from_first - begin : 0;
    return {kept, left < kept.size() ? left : kept.size()};
  }
};

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
/// Copies share it; one thread.
class SplitExpression {
 public:
  /// @param source  the file it comes from, for messages
  /// @throws UserError (config) when it cannot be compiled, or is outside what to_pcre2 knows
  SplitExpression(const Pattern& pattern, std::string_view source);

  struct Match {
    std::size_t begin;
    std::size_t end;
  };
  /// The first match at or after `from`. @pre text is valid UTF-8, `from` is at the start of a
  /// character or the end
  std::optional<Match> find(std::string_view text, std::size_t from);

  /// Calls `match` for all matches in a text, in order, as the library finds them: an empty one may
  /// stand at either end of the text and anywhere between, but not right after the match before.
  /// @pre text is valid UTF-8
  template <class Function>
  void for_each_match(std::string_view text, Function&& match) {
    std::size_t from = 0;
    std::optional<std::size_t> last_end;
    while (from <= text.size()) {
      const auto found = find(text, from);
      if (!found) {
        return;
      }
      if (found->begin == found->end && last_end == found->end) {
        from += from < text.size() ? size_of_first_character(text.substr(from)) : 1;
        continue;
      }
      from = found->end;
      last_end = found->end;
      match(*found);
    }
  }

  /// @throws UserError (config) if it can match an empty text, where the library does not know what
  /// to replace (it counts wrongly in the steps that follow); `user` is who may not
  void refuse_empty_matches(std::string_view user) const;

  /// Puts the piece with `content` for each match into `replaced` and returns that; where nothing
  /// matches the piece, with `replaced` as it was. The content comes of the character that its
  /// match ends with, as in the library. @pre text is valid UTF-8
  Piece replace(Piece piece, std::string_view content, std::string& replaced);

 private:
  struct Compiled;
  std::shared_ptr<Compiled> compiled_;
};

}  // namespace fourfold::data::detail
