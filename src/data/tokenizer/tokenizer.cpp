// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "unicode/utf8.hpp"

#include <fourfold/data/tokenizer.hpp>

#include <utility>

namespace fourfold::data {

std::string StreamDecoder::next(std::int32_t token) {
  std::string text = std::exchange(held_, {});
  take(token, text);
  const std::size_t whole = text.size() - detail::begun_utf8_suffix(text);
  held_ = text.substr(whole);
  text.resize(whole);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text = std::exchange(held_, {});
  end(text);
  return text;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  const std::unique_ptr<StreamDecoder> decoder = stream_decoder();
  std::string text;
  for (const std::int32_t id : ids) {
    text += decoder->next(id);
  }
  return text + decoder->finish();
}

}  // namespace fourfold::data
