// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/data/tokenizer.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace fourfold::sample_program {

/// The text after a prompt that stands there already. What follows a text is not printed like the
/// beginning of one, so the decoder has seen the prompt; of its end it may hold some bytes back
/// until it sees the next token (a character that is several byte tokens).
class Continuation {
 public:
  Continuation(const data::Tokenizer& tokenizer, std::span<const std::int32_t> prompt);
  /// What the next token adds that can be shown by now.
  std::string next(std::int32_t token) { return without_prompt(decoder_.next(token)); }
  /// What was held back to the end.
  std::string finish() { return without_prompt(decoder_.finish()); }

 private:
  std::string without_prompt(std::string text);

  data::StreamDecoder decoder_;
  std::string held_back_;  ///< of the prompt's end
};

}  // namespace fourfold::sample_program
