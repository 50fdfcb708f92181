// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/bpe_description.hpp"

#include <functional>
#include <optional>
#include <string>

namespace fourfold::data::detail {

/// Takes a spelled token and appends the text that is certain by then; nothing: no further token
/// comes, and what was held back is appended.
using TakeToken = std::function<void(std::optional<std::string> token, std::string& text)>;

/// Turns spelled tokens into text by the "decoder" of a tokenizer file, token after token; without
/// one they are put together with spaces between, as the library does. All that comes out, joined,
/// is what the `tokenizers` library makes of all tokens at once; but bytes that are not UTF-8 leave
/// a ByteLevel at the end as they are, where the library puts U+FFFD.
/// @throws UserError (config) for an expression as SplitExpression does
TakeToken token_decoder(const BpeDescription& description);

}  // namespace fourfold::data::detail
