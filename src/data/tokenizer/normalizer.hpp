// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/bpe_description.hpp"
#include "tokenizer/piece.hpp"
#include "tokenizer/split_expression.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::data::detail {

/// Applies the normalization of a tokenizer file, step after step.
class Normalizer {
 public:
  /// @param source  the file the steps come from, for messages
  /// @throws UserError (config) for an expression as SplitExpression does
  Normalizer(const std::vector<NormalizeStep>& steps, std::string_view source);

  /// The normal form of a piece: `piece` itself where nothing changes, else text that is valid
  /// until the next call. @pre valid UTF-8
  Piece apply(Piece piece);

 private:
  /// A step that changes nothing leaves `changed` alone and returns the piece.
  Piece apply(std::size_t number, Piece piece, std::string& changed);

  std::vector<NormalizeStep> steps_;
  std::vector<std::optional<SplitExpression>> patterns_;  ///< of the steps that replace
  std::array<std::string, 2> buffers_;                    ///< used in turns
};

}  // namespace fourfold::data::detail
