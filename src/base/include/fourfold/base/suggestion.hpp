// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fourfold {

/// Damerau-Levenshtein distance (optimal string alignment): insertions, deletions, substitutions,
/// swaps of neighbours.
int edit_distance(std::string_view a, std::string_view b);

/// The known word nearest to `typed` when it is at most two edits away: "did you mean ...?".
std::optional<std::string> nearest(std::string_view typed, std::span<const std::string> known);

/// The only known word that begins with `typed`: "eval_every_steps" for "eval_every". Else the
/// nearest.
std::optional<std::string> likely(std::string_view typed, std::span<const std::string> known);

}  // namespace fourfold
