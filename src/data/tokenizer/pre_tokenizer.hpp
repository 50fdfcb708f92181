// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/bpe_description.hpp"
#include "tokenizer/split_expression.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::data::detail {

/// Cuts text into words by the steps of a tokenizer file.
class PreTokenizer {
 public:
  using Word = std::function<void(std::string_view)>;

  /// @param source  the file the steps come from, for messages
  /// @throws UserError (config) for an expression as SplitExpression does
  PreTokenizer(const std::vector<SplitStep>& steps, std::string_view source);

  /// Gives the words of a piece to `word`, in order, none empty; they are valid during the call.
  /// @pre valid UTF-8, not empty
  void split(Piece piece, const Word& word) { split(0, piece, word); }

 private:
  /// Applies steps number, number + 1, ...
  void split(std::size_t number, Piece piece, const Word& word);
  void split_at_matches(std::size_t number, Piece piece, const Word& word);
  /// The general case, of matches that are joined with what stands beside them.
  void split_merged(std::size_t number, Piece piece, const Word& word);
  void split_at_marks(std::size_t number, Piece piece, const Word& word);
  /// The piece with the mark for each space, and one in front where the step wants it.
  Piece marked(std::size_t number, Piece piece);

  std::vector<SplitStep> steps_;
  std::vector<std::optional<SplitExpression>> patterns_;  ///< of the steps that split
  std::vector<std::string> buffers_;                      ///< of the steps that change the piece
};

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
