// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "added_tokens.hpp"

#include <algorithm>

namespace fourfold::data::detail {

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens, bool first_round) {
  for (const AddedToken& token : tokens) {
    if (token.first_round == first_round) {
      longest_first_.push_back(token);
      begins_one_[static_cast<unsigned char>(token.content.front())] = true;
    }
  }
  std::sort(longest_first_.begin(), longest_first_.end(),
            [](const AddedToken& a, const AddedToken& b) {
              return a.content.size() != b.content.size() ? a.content.size() > b.content.size()
                                                          : a.content < b.content;
            });
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, std::size_t from) const {
  if (longest_first_.empty()) {
    return std::nullopt;
  }
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!begins_one_[static_cast<unsigned char>(text[begin])]) {
      continue;
    }
    for (const AddedToken& token : longest_first_) {
      if (text.substr(begin).starts_with(token.content)) {
        return Match{begin, begin + token.content.size(), token.id};
      }
    }
  }
  return std::nullopt;
}

}  // namespace fourfold::data::detail
