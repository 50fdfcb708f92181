// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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

}  // namespace fourfold::data::detail
