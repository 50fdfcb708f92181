// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/bpe_description.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::data::detail {

/// Turns spelled tokens into text by the "decoder" of a tokenizer file, token after token. All that
/// comes out, joined, is what the `tokenizers` library makes of all tokens at once; but bytes that
/// are not UTF-8 leave a ByteLevel at the end as they are, where the library puts U+FFFD.
class TokenDecoder {
 public:
  /// @param steps  nothing: tokens are put together with spaces between, as the library does
  /// @param source  the file, for messages
  /// @throws UserError (config) for an expression as SplitExpression does
  TokenDecoder(const std::optional<std::vector<DecodeStep>>& steps, std::string_view source);
  ~TokenDecoder();

  /// Appends the text that is certain after one more token.
  void take(const std::string& spelled, std::string& text);
  /// Appends what was held back.
  void finish(std::string& text);

  class Step;

 private:
  std::vector<std::unique_ptr<Step>> steps_;  ///< the last is the first to take a token
  std::string* text_ = nullptr;               ///< where the step at the end appends
};

}  // namespace fourfold::data::detail
