// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/added_tokens.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

namespace fourfold::data::detail {
namespace {

constexpr std::int32_t root = 0;

unsigned char byte_at(std::string_view text, std::size_t place) noexcept {
  return text[place];
}

std::size_t two_bytes(std::size_t first, std::size_t second) noexcept {
  return first << 8 | second;
}

std::size_t bytes_in(const std::vector<AddedTokens::Spelled>& tokens) {
  return std::accumulate(
      tokens.begin(), tokens.end(), std::size_t{0},
      [](std::size_t sum, const auto& token) { return sum + token.first.size(); });
}

/// Where the blanks that end `text` begin.
std::size_t end_without_blanks(std::string_view text) {
  while (!text.empty() && is_white_space(last_character(text))) {
    while ((byte_at(text, text.size() - 1) & 0xC0) == 0x80) {
      text.remove_suffix(1);
    }
    text.remove_suffix(1);
  }
  return text.size();
}

std::size_t blanks_at_begin(std::string_view text) {
  const std::size_t all = text.size();
  std::size_t blanks = 0;
  while (!text.empty() && is_white_space(take_character(text))) {
    blanks = all - text.size();
  }
  return blanks;
}

}  // namespace

std::vector<AddedToken> numbered(const BpeDescription& description) {
  std::unordered_map<std::string_view, std::int32_t> known;
  for (const auto& [spelled, id] : description.vocab) {
    known.emplace(spelled, id);
  }
  auto next = static_cast<std::int32_t>(description.vocab.size());
  std::map<std::int32_t, AddedToken> by_number;
  for (const AddedToken& listed : description.added) {
    if (listed.content.empty()) {
      continue;
    }
    const auto [entry, is_new] = known.try_emplace(listed.content, next);
    next += is_new ? 1 : 0;
    AddedToken& token = by_number[entry->second] = listed;
    token.id = entry->second;
  }
  std::vector<AddedToken> tokens;
  for (auto& [id, token] : by_number) {
    tokens.push_back(std::move(token));
  }
  return tokens;
}

AddedTokens::AddedTokens(const std::vector<Spelled>& tokens)
    : children_(bytes_in(tokens)), token_at_(1, -1) {
  for (const auto& [text, token] : tokens) {
    if (text.empty()) {
      continue;
    }
    const std::int32_t first = byte_at(text, 0);
    first_bytes_.set(first);
    for (std::int32_t second = 0; second < 256; ++second) {
      if (text.size() == 1 || second == byte_at(text, 1)) {
        two_bytes_.set(two_bytes(first, second));
      }
    }
    std::int32_t node = root;
    for (std::size_t i = 0; i < text.size(); ++i) {
      PairTable::Merge child = children_.find(node, byte_at(text, i));
      if (child.rank < 0) {
        child = {0, static_cast<std::int32_t>(token_at_.size())};
        children_.insert(node, byte_at(text, i), child);
        token_at_.push_back(-1);
      }
      node = child.merged;
    }
    std::int32_t& place = token_at_[node];
    if (place < 0) {
      place = static_cast<std::int32_t>(tokens_.size());
      tokens_.push_back(token);
    }
  }
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, std::size_t from,
                                                    std::size_t done) const {
  if (tokens_.empty()) {
    return std::nullopt;
  }
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    const std::int32_t first = byte_at(text, begin);
    const std::int32_t second = begin + 1 < text.size() ? byte_at(text, begin + 1) : 0;
    if (!first_bytes_[first] || !two_bytes_[two_bytes(first, second)]) {
      continue;
    }
    std::int32_t found = -1;
    std::size_t found_end = 0;
    std::int32_t node = root;
    for (std::size_t end = begin; end < text.size(); ++end) {
      const PairTable::Merge child = children_.find(node, byte_at(text, end));
      if (child.rank < 0) {
        break;
      }
      node = child.merged;
      if (token_at_[node] >= 0) {
        found = token_at_[node];
        found_end = end + 1;
      }
    }
    if (found >= 0) {
      return match_of(tokens_[found], text, begin, found_end, done);
    }
  }
  return std::nullopt;
}

AddedTokens::Match AddedTokens::match_of(const AddedToken& token, std::string_view text,
                                         std::size_t begin, std::size_t end,
                                         std::size_t done) const {
  Match match{.begin = begin, .end = end, .from = end, .id = token.id};
  if (token.single_word) {
    std::string_view after = text.substr(end);
    if ((begin > 0 && is_word_character(last_character(text.substr(0, begin)))) ||
        (!after.empty() && is_word_character(take_character(after)))) {
      match.end = 0;
      return match;
    }
  }
  if (token.left_strip) {
    match.begin = std::max(end_without_blanks(text.substr(0, begin)), done);
  }
  if (token.right_strip) {  // another token may be among these blanks: the search goes on in them
    match.end += blanks_at_begin(text.substr(end));
  }
  return match;
}

}  // namespace fourfold::data::detail
