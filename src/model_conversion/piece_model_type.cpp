// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/model_conversion/hf_tokenizer.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace fourfold::model_conversion {
namespace {

/// A number of a protocol buffer is taken off it; nothing where there is none.
std::optional<std::uint64_t> take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  constexpr std::size_t longest = 10;
  for (std::size_t i = 0; i < std::min(longest, rest.size()); ++i) {
    const unsigned char byte = rest[i];
    const std::uint64_t seven_bits = byte & 0x7fU;
    value |= seven_bits << (7 * i);
    if (byte < 0x80) {
      rest.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

/// A field of a protocol buffer.
struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;      ///< of a varint
  std::string_view bytes = {};  ///< of what has a length
};

/// The first is taken off; nothing at the end, or where this is no protocol buffer.
std::optional<Field> take_field(std::string_view& rest) {
  const auto tag = take_varint(rest);
  if (!tag) {
    return std::nullopt;
  }
  Field field{.number = *tag >> 3U};
  const std::uint64_t type = *tag & 7U;
  if (type == 0) {
    const auto value = take_varint(rest);
    field.value = value.value_or(0);
    return value ? std::optional(field) : std::nullopt;
  }
  const std::optional<std::uint64_t> size = type == 1   ? 8
                                            : type == 2 ? take_varint(rest)
                                            : type == 5 ? std::optional<std::uint64_t>(4)
                                                        : std::nullopt;
  if (!size || *size > rest.size()) {
    return std::nullopt;
  }
  field.bytes = rest.substr(0, *size);
  rest.remove_prefix(*size);
  return field;
}

}  // namespace

bool is_sentencepiece_bpe(std::string_view model) {
  constexpr std::uint64_t trainer_spec = 2;
  constexpr std::uint64_t model_type = 3;
  constexpr std::uint64_t bpe = 2;
  std::uint64_t type = 0;
  while (const auto field = take_field(model)) {
    std::string_view of_trainer = field->number == trainer_spec ? field->bytes : std::string_view();
    while (const auto inner = take_field(of_trainer)) {
      type = inner->number == model_type ? inner->value : type;
    }
  }
  return type == bpe;
}

}  // namespace fourfold::model_conversion
