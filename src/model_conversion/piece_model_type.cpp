// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/model_conversion/hf_tokenizer.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace fourfold::model_conversion {
namespace {

/// The fields of a protocol buffer, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  struct Field {
    std::uint64_t number = 0;
    std::uint64_t value = 0;      ///< of a varint
    std::string_view bytes = {};  ///< of what has a length
  };

  /// Nothing at the end, or where this is no protocol buffer.
  std::optional<Field> next() {
    const auto tag = varint();
    if (!tag) {
      return std::nullopt;
    }
    Field field{.number = *tag >> 3U};
    std::optional<std::uint64_t> size = 0;
    switch (*tag & 7U) {
      case 0: {
        const auto value = varint();
        field.value = value.value_or(0);
        return value ? std::optional(field) : std::nullopt;
      }
      case 1:
        size = 8;
        break;
      case 2:
        size = varint();
        break;
      case 5:
        size = 4;
        break;
      default:
        return std::nullopt;
    }
    if (!size || *size > rest_.size()) {
      return std::nullopt;
    }
    field.bytes = rest_.substr(0, *size);
    rest_.remove_prefix(*size);
    return field;
  }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    constexpr std::size_t longest = 10;
    for (std::size_t i = 0; i < std::min(longest, rest_.size()); ++i) {
      const unsigned char byte = rest_[i];
      const std::uint64_t seven_bits = byte & 0x7fU;
      value |= seven_bits << (7 * i);
      if (byte < 0x80) {
        rest_.remove_prefix(i + 1);
        return value;
      }
    }
    return std::nullopt;
  }

  std::string_view rest_;
};

}  // namespace

bool is_sentencepiece_bpe(std::string_view model) {
  constexpr std::uint64_t trainer_spec = 2;
  constexpr std::uint64_t model_type = 3;
  constexpr std::uint64_t bpe = 2;
  std::uint64_t type = 0;
  Fields fields(model);
  for (auto field = fields.next(); field; field = fields.next()) {
    Fields of_trainer(field->number == trainer_spec ? field->bytes : std::string_view());
    for (auto inner = of_trainer.next(); inner; inner = of_trainer.next()) {
      type = inner->number == model_type ? inner->value : type;
    }
  }
  return type == bpe;
}

}  // namespace fourfold::model_conversion
