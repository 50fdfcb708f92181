// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bpe_description.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace fourfold::data::detail {

/// Finds added tokens in text: the leftmost occurrence, the longest token among those that begin
/// there.
class AddedTokens {
 public:
  /// Takes those of `tokens` that belong to the first round, or those that do not.
  AddedTokens(const std::vector<AddedToken>& tokens, bool first_round);

  struct Match {
    std::size_t begin;
    std::size_t end;
    std::int32_t id;
  };
  std::optional<Match> find(std::string_view text, std::size_t from) const;

 private:
  std::vector<AddedToken> longest_first_;
  std::array<bool, 256> begins_one_{};
};

}  // namespace fourfold::data::detail
