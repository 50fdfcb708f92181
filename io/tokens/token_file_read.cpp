// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokens/token_bytes.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/io/token_file.hpp>

#include <utility>

namespace fourfold::io {

using detail::corrupt;
using detail::load;
using detail::megatron_header_bytes;

namespace {

/// Copies and widens; returns whether every token was in [0, vocab).
template <class T>
bool copy_checked(const std::byte* from, std::span<std::int32_t> out, std::int64_t vocab) {
  bool good = true;
  for (std::size_t i = 0; i < out.size(); ++i) {
    T token;
    std::memcpy(&token, from + i * sizeof(T), sizeof(T));
    const std::int64_t wide = token;
    good &= wide >= 0 && wide < vocab;
    out[i] = static_cast<std::int32_t>(wide);
  }
  return good;
}

template <class Body>
auto with_type(TokenType type, Body&& body) {
  switch (type) {
    case TokenType::u8:
      return body(std::uint8_t{});
    case TokenType::i8:
      return body(std::int8_t{});
    case TokenType::i16:
      return body(std::int16_t{});
    case TokenType::i32:
      return body(std::int32_t{});
    case TokenType::i64:
      return body(std::int64_t{});
    case TokenType::u16:
      return body(std::uint16_t{});
    case TokenType::u32:
      break;
  }
  return body(std::uint32_t{});
}

}  // namespace

std::string_view name(TokenFormat format) noexcept {
  return format == TokenFormat::megatron ? "Megatron .bin/.idx" : "llm.c .bin";
}

std::string_view name(TokenType type) noexcept {
  switch (type) {
    case TokenType::u8:
      return "u8";
    case TokenType::i8:
      return "i8";
    case TokenType::i16:
      return "i16";
    case TokenType::i32:
      return "i32";
    case TokenType::i64:
      return "i64";
    case TokenType::u16:
      return "u16";
    case TokenType::u32:
      break;
  }
  return "u32";
}

std::size_t size_bytes(TokenType type) noexcept {
  return with_type(type, [](auto token) { return sizeof(token); });
}

std::optional<std::int64_t> TokenFile::documents() const noexcept {
  return format_ == TokenFormat::megatron ? std::optional(boundaries_ - 1) : std::nullopt;
}

void TokenFile::read(std::int64_t first, std::span<std::int32_t> out, std::int64_t vocab) const {
  FOURFOLD_EXPECT(first >= 0 && first <= tokens_ && std::ssize(out) <= tokens_ - first);
  FOURFOLD_EXPECT(vocab >= 0 && vocab <= std::int64_t{1} << 31);
  const std::byte* from =
      tokens_file_.bytes().data() + first_token_offset_ + first * size_bytes(type_);
  const bool good =
      with_type(type_, [&](auto token) { return copy_checked<decltype(token)>(from, out, vocab); });
  if (good) {
    return;
  }
  with_type(type_, [&](auto token) {
    for (std::int64_t i = first;; ++i, from += sizeof(token)) {
      std::memcpy(&token, from, sizeof(token));
      if (std::cmp_less(token, 0) || std::cmp_greater_equal(token, vocab)) {
        throw UserError(
            ExitCode::data_corrupt,
            format_message("{}: token {} (byte {}) is {}, outside the vocabulary [0, {}); the file "
                           "was made with another tokenizer, or the vocabulary is set too small",
                           path().string(), i, from - tokens_file_.bytes().data(), token, vocab));
      }
    }
  });
}

std::int64_t TokenFile::length(std::int64_t sequence) const {
  FOURFOLD_EXPECT(sequence >= 0 && sequence < sequences_);
  const std::size_t offset = megatron_header_bytes + sequence * 4;
  const auto value = load<std::int32_t>(index_file_, offset);
  if (value < 0 || value > tokens_) {
    corrupt(index_file_, offset,
            format_message("sequence {} has length {} in a file of {} tokens", sequence, value,
                           tokens_));
  }
  return value;
}

std::int64_t TokenFile::pointer(std::int64_t sequence) const {
  FOURFOLD_EXPECT(sequence >= 0 && sequence < sequences_);
  const std::size_t offset = megatron_header_bytes + sequences_ * 4 + sequence * 8;
  const auto value = load<std::int64_t>(index_file_, offset);
  const std::int64_t token_bytes = size_bytes(type_);
  if (value < 0 || value % token_bytes != 0 || value / token_bytes > tokens_) {
    corrupt(index_file_, offset,
            format_message("sequence {} starts at byte {} of a .bin of {} tokens of {} bytes",
                           sequence, value, tokens_, token_bytes));
  }
  return value;
}

std::int64_t TokenFile::boundary(std::int64_t document) const {
  FOURFOLD_EXPECT(document >= 0 && document < boundaries_);
  const std::size_t offset = megatron_header_bytes + sequences_ * 12 + document * 8;
  const auto value = load<std::int64_t>(index_file_, offset);
  if (value < 0 || value > sequences_) {
    corrupt(index_file_, offset,
            format_message("document {} begins at sequence {} of {}", document, value, sequences_));
  }
  return value;
}

Range TokenFile::document(std::int64_t document) const {
  FOURFOLD_EXPECT(documents() && document >= 0 && document < *documents());
  const std::int64_t begin = boundary(document);
  const std::int64_t end = boundary(document + 1);
  if (end < begin) {
    corrupt(
        index_file_, megatron_header_bytes + sequences_ * 12 + document * 8,
        format_message("document {} runs backwards, from sequence {} to {}", document, begin, end));
  }
  const std::int64_t token_bytes = size_bytes(type_);
  const auto position = [&](std::int64_t sequence) {
    return sequence == sequences_ ? tokens_ : pointer(sequence) / token_bytes;
  };
  const Range range{position(begin), position(end) - position(begin)};
  if (range.count < 0) {
    corrupt(index_file_, megatron_header_bytes + sequences_ * 4 + begin * 8,
            format_message("document {} runs backwards in the .bin", document));
  }
  return range;
}

void TokenFile::verify_index() const {
  if (format_ != TokenFormat::megatron) {
    return;
  }
  const std::int64_t token_bytes = size_bytes(type_);
  std::int64_t next = 0;
  for (std::int64_t sequence = 0; sequence < sequences_; ++sequence) {
    if (pointer(sequence) != next) {
      corrupt(index_file_, megatron_header_bytes + sequences_ * 4 + sequence * 8,
              format_message("sequence {} starts at byte {} where the one before ends at {}",
                             sequence, pointer(sequence), next));
    }
    next += length(sequence) * token_bytes;
  }
  for (std::int64_t entry = 0; entry + 1 < boundaries_; ++entry) {
    document(entry);
  }
}

void TokenFile::will_need(Range range) const noexcept {
  const std::size_t token_bytes = size_bytes(type_);
  tokens_file_.will_need(first_token_offset_ + range.begin * token_bytes,
                         range.count * token_bytes);
}

}  // namespace fourfold::io
