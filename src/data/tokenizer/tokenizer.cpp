// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer_kinds.hpp"
#include "unicode/unicode_text.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace fourfold::data {

std::string StreamDecoder::next(std::int32_t token) {
  std::string text = std::exchange(held_, {});
  take_(token, text);
  const std::size_t whole = text.size() - detail::begun_utf8_suffix(text);
  held_ = text.substr(whole);
  text.resize(whole);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text = std::exchange(held_, {});
  take_(std::nullopt, text);
  return text;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  StreamDecoder decoder = stream_decoder();
  std::string text;
  for (const std::int32_t id : ids) {
    text += decoder.next(id);
  }
  return text + decoder.finish();
}

void detail::require_token(std::int32_t token, const Tokenizer& tokenizer) {
  if (token < 0 || token >= tokenizer.vocab_size()) {
    throw UserError(
        ExitCode::data_corrupt,
        format_message("token {} is outside the vocabulary [0, {}) of {}; the tokens "
                       "were made with another tokenizer",
                       token, tokenizer.vocab_size(), tokenizer.files().main.path.string()));
  }
}

namespace {

constexpr int alphabet_end = 256 + 68;

constexpr bool is_printable(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) ||
         (byte >= 174 && byte <= 255);
}

/// Byte of each code point below alphabet_end, or -1.
constexpr std::array<int, alphabet_end> bytes_of_code_points() {
  std::array<int, alphabet_end> bytes{};
  bytes.fill(-1);
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[is_printable(byte) ? byte : next++] = byte;
  }
  return bytes;
}

constexpr std::array<int, alphabet_end> byte_of = bytes_of_code_points();

}  // namespace

std::optional<std::string> bytes_of_spelling(std::string_view spelled) {
  std::string bytes;
  for (std::size_t i = 0; i < spelled.size(); ++i) {
    const unsigned char lead = spelled[i];
    unsigned code_point = lead;
    if (code_point >= 0x80) {
      // The whole alphabet lies below U+0800, so longer sequences cannot belong to it.
      if (code_point >= 0xE0 || i + 1 == spelled.size()) {
        return std::nullopt;
      }
      code_point = (code_point & 0x1F) << 6 | (spelled[++i] & 0x3F);
    }
    if (code_point >= alphabet_end || byte_of[code_point] < 0) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(byte_of[code_point]));
  }
  return bytes;
}

std::string spelling_of_byte(unsigned char byte) {
  const auto* const place = std::ranges::find(byte_of, byte);
  std::string spelled;
  detail::append_character(static_cast<char32_t>(place - byte_of.begin()), spelled);
  return spelled;
}

}  // namespace fourfold::data
