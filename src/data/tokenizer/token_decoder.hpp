// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/bpe_description.hpp"

#include <functional>
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
  TokenDecoder(const TokenDecoder&) = delete;
  TokenDecoder& operator=(const TokenDecoder&) = delete;

  /// Appends the text that is certain after one more token.
  void take(const std::string& spelled, std::string& text);
  /// Appends what was held back.
  void finish(std::string& text);

  /// A step: takes a token, and gives others to the step after it. Nothing: no further token comes.
  using Take = std::function<void(std::optional<std::string> token)>;

 private:
  Take first_;                   ///< has the steps after it
  std::string* text_ = nullptr;  ///< where what comes out of the last one is appended
};

}  // namespace fourfold::data::detail
