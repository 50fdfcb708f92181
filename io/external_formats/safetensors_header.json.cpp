// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "external_formats/external_file.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/io/safetensors.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <utility>

namespace fourfold::io {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* metadata_name = "__metadata__";

struct Type {
  std::string_view name;
  unsigned bits;
  std::optional<DType> dtype = {};
};

/// All types of the format; arrays of those without a DType can lie in a file, and are not read.
constexpr std::array<Type, 22> types{{
    {"BOOL", 8},
    {"F4", 4},
    {"F6_E2M3", 6},
    {"F6_E3M2", 6},
    {"U8", 8, DType::u8},
    {"I8", 8},
    {"F8_E5M2", 8},
    {"F8_E4M3", 8},
    {"F8_E8M0", 8},
    {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8},
    {"I16", 16},
    {"U16", 16, DType::u16},
    {"F16", 16, DType::f16},
    {"BF16", 16, DType::bf16},
    {"I32", 32, DType::i32},
    {"U32", 32, DType::u32},
    {"F32", 32, DType::f32},
    {"C64", 64},
    {"F64", 64, DType::f64},
    {"I64", 64, DType::i64},
    {"U64", 64, DType::u64},
}};

const Type* type_named(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(types, name, &Type::name);
  return found == types.end() ? nullptr : found;
}

std::string_view type_of(DType dtype) {
  const auto* const found = std::ranges::find(types, std::optional(dtype), &Type::dtype);
  FOURFOLD_ASSERT(found != types.end());
  return found->name;
}

/// Takes a header as it is parsed, so that no tree of it is ever built, and stops at the first
/// thing that is not as it should be.
class HeaderReader final : public json::json_sax_t {
 public:
  HeaderReader(std::vector<StoredArray::Description>& arrays,
               std::map<std::string, std::string>& metadata)
      : arrays_(arrays), metadata_(metadata) {}
  const Defect& defect() const noexcept { return defect_; }

  bool key(std::string& text) override {
    if (skipped_levels_ > 0) {
      return true;
    }
    if (place_ == Place::top) {
      name_ = text;
      const bool is_second = name_ == metadata_name && std::exchange(has_metadata_, true);
      return !is_second || fail(format_message("has two entries '{}'", name_));
    }
    if (place_ == Place::variant) {
      const bool is_first = array_.type.empty();
      array_.type = text;
      return is_first || fail(format_message("gives '{}' several types", name_));
    }
    member_ = text;
    return place_ == Place::metadata || begins_member();
  }
  bool start_object(std::size_t /*members*/) override { return takes(Kind::object, "an object"); }
  bool start_array(std::size_t /*elements*/) override { return takes(Kind::list, "a list"); }
  bool end_object() override { return ends(); }
  bool end_array() override { return ends(); }
  bool string(std::string& text) override {
    text_ = text;
    return takes(Kind::text, "a text");
  }
  bool number_unsigned(json::number_unsigned_t number) override {
    number_ = number;
    return takes(Kind::number, "");
  }
  bool null() override { return takes(Kind::null, "null"); }
  bool boolean(bool /*value*/) override { return takes(Kind::other, "true or false"); }
  bool number_integer(json::number_integer_t number) override {
    return takes(Kind::other, fmt::format("the number {}", number));
  }
  bool number_float(json::number_float_t /*number*/, const json::string_t& text) override {
    return takes(Kind::other, "the number " + text);
  }
  bool binary(json::binary_t& /*bytes*/) override { return takes(Kind::other, "bytes"); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return fail(format_message("is no JSON from byte {} of the header on", position));
  }

 private:
  /// "variant": of {"F32": null}, which the library takes for "F32".
  enum class Place : std::uint8_t { before, top, metadata, entry, variant, list, after };
  static constexpr std::array<std::string_view, 3> members{"dtype", "shape", "data_offsets"};

  /// Number and text are in number_ and text_.
  enum class Kind : std::uint8_t { object, list, text, number, null, other };

  /// A value, or the begin of an object or list. @param shown  where it may not come here
  bool takes(Kind kind, const std::string& shown) {
    const bool opens = kind == Kind::object || kind == Kind::list;
    if (place_ == Place::entry && is_list_entry_ && skipped_levels_ == 0 &&
        (opens || kind == Kind::text) && !begins_next_member()) {
      return false;
    }
    // Of a member that the format does not know, which its library skips.
    if (skipped_levels_ > 0 || (place_ == Place::entry && !is_known_member_)) {
      skipped_levels_ += opens ? 1 : 0;
      return true;
    }
    return takes_here(kind) ||
           fail(format_message("has {} where it does not belong (entry '{}')",
                               kind == Kind::number ? fmt::format("the number {}", number_) : shown,
                               printable(name_)));
  }

  bool takes_here(Kind kind) {
    switch (place_) {
      case Place::before:
        return kind == Kind::object && goes_to(Place::top);
      case Place::top:
        if (name_ == metadata_name) {
          return kind == Kind::null || (kind == Kind::object && goes_to(Place::metadata));
        }
        is_list_entry_ = kind == Kind::list;
        begin_entry();
        return (kind == Kind::object || kind == Kind::list) && goes_to(Place::entry);
      case Place::metadata:
        if (kind == Kind::text) {
          metadata_[member_] = text_;
        }
        return kind == Kind::text;
      case Place::entry:
        if (member_ == "shape" || member_ == "data_offsets") {
          return kind == Kind::list && goes_to(Place::list);
        }
        array_.type = kind == Kind::text ? text_ : "";
        return member_ == "dtype" &&
               (kind == Kind::text || (kind == Kind::object && goes_to(Place::variant)));
      case Place::variant:
        return kind == Kind::null;
      case Place::list:
        return kind == Kind::number && number_ <= std::uint64_t{INT64_MAX} && adds_number();
      case Place::after:
        break;
    }
    return false;
  }

  bool goes_to(Place place) {
    place_ = place;
    return true;
  }

  bool ends() {
    if (skipped_levels_ > 0) {
      --skipped_levels_;
      return true;
    }
    const Place ended = place_;
    place_ = ended == Place::top                               ? Place::after
             : ended == Place::list || ended == Place::variant ? Place::entry
                                                               : Place::top;
    return ended != Place::entry || end_entry();
  }

  void begin_entry() {
    member_.clear();
    array_ = {};
    array_.name = name_;
    seen_ = 0;
    is_known_member_ = true;
    shape_.clear();
    range_.clear();
  }

  bool begins_member() {
    const auto found = std::ranges::find(members, member_);
    const unsigned bit = found == members.end() ? 0U : 1U << (found - members.begin());
    if ((seen_ & bit) != 0) {
      return fail(
          format_message("has '{}' twice in the entry '{}'", printable(member_), printable(name_)));
    }
    seen_ |= bit;
    is_known_member_ = bit != 0;
    return true;
  }

  /// The library takes an entry's members as a list, too: ["F32", [2], [0, 8]]. A text, a list or
  /// an object there is the next one.
  bool begins_next_member() {
    const std::size_t next = std::popcount(seen_);
    if (next == members.size()) {
      return fail(format_message("has more than {} members in the entry '{}'", next, name_));
    }
    member_ = members.at(next);
    return begins_member();
  }

  bool adds_number() {
    std::vector<std::int64_t>& list = member_ == "shape" ? shape_ : range_;
    if (&list == &range_ && list.size() == 2) {
      return fail(
          format_message("has more than 2 numbers as {} of '{}'", member_, printable(name_)));
    }
    list.push_back(number_);
    return true;
  }

  bool fail(std::string what) {
    if (!defect_) {
      defect_ = std::move(what);
    }
    return false;
  }

  bool end_entry();
  bool add_array();

  std::vector<StoredArray::Description>& arrays_;
  std::map<std::string, std::string>& metadata_;
  Defect defect_;
  Place place_ = Place::before;
  std::map<std::string, std::size_t> numbers_;  ///< of the arrays, by name
  bool has_metadata_ = false;
  std::string name_;    ///< key of the entry
  std::string member_;  ///< key within it
  std::string text_;
  std::uint64_t number_ = 0;
  unsigned seen_ = 0;  ///< members of the entry, a bit each
  bool is_known_member_ = true;
  bool is_list_entry_ = false;
  int skipped_levels_ = 0;
  StoredArray::Description array_;
  std::vector<std::int64_t> shape_;
  std::vector<std::int64_t> range_;
};

/// Bytes of an array; nothing when they are no whole number, or too many to count.
std::optional<std::int64_t> bytes_of(const std::vector<std::int64_t>& shape, unsigned bits) {
  std::int64_t total = bits;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(total, extent, &total)) {
      return std::nullopt;
    }
  }
  return total % 8 == 0 ? std::optional(total / 8) : std::nullopt;
}

bool HeaderReader::end_entry() {
  const std::string shown = printable(name_);
  if (seen_ != 7 || range_.size() != 2 || range_[1] < range_[0]) {
    return fail(format_message(
        "has an entry '{}' without dtype, shape and two ascending data_offsets", shown));
  }
  const Type* const type = type_named(array_.type);
  if (type == nullptr) {
    return fail(format_message("has '{}' of the unknown type '{}'", shown, printable(array_.type)));
  }
  const std::optional<std::int64_t> bytes = bytes_of(shape_, type->bits);
  if (bytes != range_[1] - range_[0]) {
    return fail(format_message("gives '{}' {} bytes, which are not what its shape [{}] of {} takes",
                               shown, range_[1] - range_[0], fmt::join(shape_, ", "), type->name));
  }
  array_.dtype = type->dtype;
  // No array of more dimensions is read; what is known of one is where it lies.
  array_.shape = shape_.size() <= Shape::max_rank ? Shape(shape_) : Shape{*bytes * 8 / type->bits};
  array_.first_byte = range_[0];
  array_.bytes = *bytes;
  return add_array();
}

/// The library takes the last of two entries of one name; here they have to agree.
bool HeaderReader::add_array() {
  const auto [found, is_new] = numbers_.emplace(array_.name, arrays_.size());
  if (is_new) {
    arrays_.push_back(std::move(array_));
    return true;
  }
  const StoredArray::Description& other = arrays_[found->second];
  return (other.type == array_.type && other.shape == array_.shape &&
          other.first_byte == array_.first_byte && other.bytes == array_.bytes) ||
         fail(format_message("has two entries '{}' that contradict each other", printable(name_)));
}

}  // namespace

Defect parse_safetensors_header(std::string_view text,
                                std::vector<StoredArray::Description>& arrays,
                                std::map<std::string, std::string>& metadata) {
  // The parser takes a zero byte for the end of its input, and whatever follows would go unseen.
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{' ||
      text.find('\0') != std::string_view::npos) {
    return "has a header that is no JSON object";
  }
  HeaderReader reader(arrays, metadata);
  if (!json::sax_parse(text, &reader) && !reader.defect()) {
    return "has a header that is no JSON";
  }
  return reader.defect();
}

Defect parse_safetensors_index(std::string_view text, std::map<std::string, std::string>& file_of) {
  std::string array;
  std::map<std::string, std::string> last;
  Defect defect;
  const auto look = [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::key) {
      array = value.get<std::string>();
    } else if (event == json::parse_event_t::value && depth == 2 && value.is_string()) {
      const auto text_of = value.get<std::string>();
      const auto [found, is_new] = last.emplace(array, text_of);
      if (!is_new && found->second != text_of) {
        defect = fmt::format("says that '{}' is in {} and in {}", printable(array),
                             printable(found->second), printable(text_of));
      }
    }
    return true;
  };
  const std::string standard = json_from_python(text);
  const auto index = json_if_any<json>(standard, look);
  if (index.is_discarded()) {
    return json_defect<json>(standard);
  }
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return "has no object \"weight_map\"";
  }
  file_of.clear();
  for (const auto& [name, file] : index["weight_map"].items()) {
    if (!file.is_string()) {
      return fmt::format("does not say in which file '{}' is", printable(name));
    }
    file_of.emplace(name, file.get<std::string>());
  }
  return defect;
}

std::string safetensors_header(std::span<const ArrayToWrite> arrays,
                               const std::map<std::string, std::string>& metadata) {
  ordered_json header = ordered_json::object();
  header[metadata_name] = metadata;
  std::int64_t offset = 0;
  for (const ArrayToWrite& array : arrays) {
    FOURFOLD_EXPECT(!header.contains(array.name));
    header[array.name] = {{"dtype", type_of(array.dtype)},
                          {"shape", std::vector(array.shape.begin(), array.shape.end())},
                          {"data_offsets", {offset, offset + array.bytes()}}};
    offset += array.bytes();
  }
  std::string text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::uint64_t length = text.size();
  static_assert(std::endian::native == std::endian::little);
  std::string result(sizeof length, '\0');
  std::memcpy(result.data(), &length, sizeof length);
  return result + text;
}

std::string safetensors_index(const std::map<std::string, std::string>& file_of,
                              std::int64_t total_bytes, std::int64_t total_parameters) {
  const ordered_json index{
      {"metadata", {{"total_size", total_bytes}, {"total_parameters", total_parameters}}},
      {"weight_map", file_of}};
  return json_text(index, 2) + "\n";
}

}  // namespace fourfold::io
