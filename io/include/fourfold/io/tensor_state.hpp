// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/contract.hpp>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <optional>
#include <string_view>

namespace fourfold::io {

/// Which of the tensors that belong to one parameter: its weight, its f32 master, or what an
/// optimizer keeps of it under a name of the optimizer's choice ("exp_avg_sq"). Names consist of
/// letters, digits, '_' and '-', at most 31 of them. A value that never allocates.
class TensorState {
 public:
  static constexpr std::size_t most_characters = 31;

  static const TensorState weight;
  static const TensorState master;  ///< f32

  static constexpr bool is_name(std::string_view text) noexcept {
    return !text.empty() && text.size() <= most_characters && std::ranges::all_of(text, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-';
    });
  }
  /// @pre is_name(text)
  constexpr explicit TensorState(std::string_view text) {
    FOURFOLD_EXPECT(is_name(text));
    std::ranges::copy(text, text_.begin());
  }
  /// Nothing where the text, which a file may have, is no name.
  static constexpr std::optional<TensorState> from_name(std::string_view text) noexcept {
    return is_name(text) ? std::optional(TensorState(text)) : std::nullopt;
  }

  /// As in files and messages; of this object.
  constexpr std::string_view name() const noexcept { return text_.data(); }

  friend constexpr bool operator==(const TensorState&, const TensorState&) = default;
  /// The order of tensors in an index, on which a checkpoint's identity depends: the states that
  /// the first checkpoints had in the order of then, all others after them by their bytes.
  friend constexpr std::strong_ordering operator<=>(const TensorState& a, const TensorState& b) {
    const std::strong_ordering by_age = a.age() <=> b.age();
    return by_age != std::strong_ordering::equal ? by_age : a.name() <=> b.name();
  }

 private:
  constexpr std::ptrdiff_t age() const noexcept {
    constexpr std::array<std::string_view, 7> first{"weight",        "master",   "exp_avg",
                                                    "exp_avg_sq",    "momentum", "error_feedback",
                                                    "outer_momentum"};
    return std::ranges::find(first, name()) - first.begin();
  }

  std::array<char, most_characters + 1> text_{};
};

inline constexpr TensorState TensorState::weight{"weight"};
inline constexpr TensorState TensorState::master{"master"};

}  // namespace fourfold::io
