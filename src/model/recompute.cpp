// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/model/recompute.hpp>

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace fourfold::model {

KeptActivations Recompute::kept(bool delayed_weights, bool up_is_gradient) const noexcept {
  KeptActivations result;
  result.products = kind != Kind::groups;
  result.up_product = kind != Kind::groups || (delayed_weights && up_is_gradient);
  result.product_inputs = kind == Kind::none || delayed_weights;
  result.statistics = kind == Kind::none;
  return result;
}

std::string name(const Recompute& recompute) {
  const std::string_view word = name_in(named_recomputes, recompute);
  return word.empty() ? fmt::format("every:{}", recompute.group_blocks) : std::string(word);
}

std::optional<Recompute> recompute_named(std::string_view text) {
  if (const auto policy = value_in(named_recomputes, text)) {
    return policy;
  }
  constexpr std::string_view every = "every:";
  if (!text.starts_with(every)) {
    return std::nullopt;
  }
  text.remove_prefix(every.size());
  Recompute groups{Recompute::Kind::groups};
  std::int32_t blocks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), blocks);
  if (error != std::errc{} || end != text.data() + text.size() || blocks < 1) {
    return std::nullopt;
  }
  groups.group_blocks = blocks;
  return groups;
}

}  // namespace fourfold::model
