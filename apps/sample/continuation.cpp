// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "continuation.hpp"

#include <algorithm>

namespace fourfold::sample_program {

Continuation::Continuation(const data::Tokenizer& tokenizer, std::span<const std::int32_t> prompt)
    : decoder_(tokenizer.stream_decoder()) {
  data::StreamDecoder whole = tokenizer.stream_decoder();
  std::size_t given = 0;
  std::string all;
  for (const std::int32_t token : prompt) {
    given += decoder_.next(token).size();
    all += whole.next(token);
  }
  all += whole.finish();
  held_back_ = all.substr(std::min(given, all.size()));
}

std::string Continuation::without_prompt(std::string text) {
  const std::size_t common = std::min(text.size(), held_back_.size());
  if (text.compare(0, common, held_back_, 0, common) != 0) {
    held_back_.clear();  // the next token has made something else of it
    return text;
  }
  held_back_.erase(0, common);
  return text.substr(common);
}

}  // namespace fourfold::sample_program
