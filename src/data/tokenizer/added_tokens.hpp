// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/bpe_description.hpp"
#include "tokenizer/pair_table.hpp"

#include <bitset>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::data::detail {

/// The added tokens with the numbers that the `tokenizers` library gives them: a text that the
/// vocabulary has keeps its number there, the others follow the vocabulary's size in the order of
/// the list. Of entries with one text the last counts, empty ones do not. What the file says of
/// their numbers counts for nothing.
/// @return in the order of their numbers, none twice
std::vector<AddedToken> numbered(const BpeDescription& description);

/// Finds added tokens in text: the leftmost occurrence, the longest token among those that begin
/// there; then the next after it.
class AddedTokens {
 public:
  /// What is looked for, and the token that it is. Empty texts are passed over; of equal ones the
  /// first counts.
  using Spelled = std::pair<std::string, AddedToken>;
  explicit AddedTokens(const std::vector<Spelled>& tokens);

  bool empty() const noexcept { return tokens_.empty(); }

  /// Cuts the text: `between` gets what is no added token (never empty), `token` the number of one
  /// that is. As the library does it, a token found among the blanks that the one before it took
  /// counts unless it takes blanks before itself (none are left), and what follows is cut from its
  /// end on. @pre text is valid UTF-8
  template <class Between, class Token>
  void cut(std::string_view text, Between&& between, Token&& token) const {
    std::size_t done = 0;
    std::size_t from = 0;
    while (const auto match = find(text, from, done)) {
      from = match->from;
      if (match->end == 0) {
        continue;  // found, but not as a word by itself
      }
      if (match->begin > done) {
        between(text.substr(done, match->begin - done));
      }
      if (match->begin < match->end) {
        token(match->id);
      }
      done = match->end;
    }
    if (done < text.size()) {
      between(text.substr(done));
    }
  }

 private:
  struct Match {
    std::size_t begin = 0;  ///< with the blanks that the token takes
    std::size_t end = 0;    ///< 0: discarded
    std::size_t from = 0;   ///< where the search goes on: after the text, before blanks taken
    std::int32_t id = 0;
  };
  /// The next match at or after `from`; blanks before `done` belong to the match before.
  std::optional<Match> find(std::string_view text, std::size_t from, std::size_t done) const;
  Match match_of(const AddedToken& token, std::string_view text, std::size_t begin, std::size_t end,
                 std::size_t done) const;

  std::vector<AddedToken> tokens_;
  std::bitset<256> first_bytes_;
  std::bitset<65536> two_bytes_;  ///< with which a token may begin; one of one byte with any second
  PairTable children_;            ///< (node, byte) to a node of the tree of texts
  std::vector<std::int32_t> token_at_;  ///< place in tokens_ of the text that ends at a node, or -1
};

}  // namespace fourfold::data::detail
