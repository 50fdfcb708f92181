// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Characters whose case folding (Unicode's full one, C + F of CaseFolding.txt) has several, as `ß`
/// is `ss`. Under (?i) Oniguruma matches either for the other, PCRE2 does not.
#pragma once

#include <optional>
#include <string_view>

namespace fourfold::data::detail {

/// The first character from `first` to `last` that folds to several.
std::optional<char32_t> folding_to_several(char32_t first, char32_t last);

/// A character that folds to several, those that `text` ends with in whatever case: `ß` for "misS",
/// and for "ß". @pre text is not empty
std::optional<char32_t> folding_to_end_of(std::u32string_view text);

}  // namespace fourfold::data::detail
