// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "unicode/unicode_text.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/text.hpp>

#include <utf8proc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::data::detail {

namespace {

using Range = std::pair<char32_t, char32_t>;

/// Characters that Unicode 10 to 18 gave a combining class or a decomposition. The library's
/// normalizers are of Unicode 9, to which they are unassigned.
/// (tests/golden/make_tokenizer_goldens.py --young prints this table.)
constexpr Range young[] = {
    {0x558, 0x558},     {0x58B, 0x58C},     {0x5C8, 0x5C9},     {0x7FD, 0x7FD},
    {0x897, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
    {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1AF0},
    {0x1DF6, 0x1DFA},   {0x209D, 0x209F},   {0x32FF, 0x32FF},   {0xA7F1, 0xA7F4},
    {0xA82C, 0xA82C},   {0xAB69, 0xAB69},   {0x105C9, 0x105C9}, {0x105E4, 0x105E4},
    {0x10781, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BF}, {0x10D24, 0x10D27},
    {0x10D69, 0x10D6D}, {0x10EAB, 0x10EAC}, {0x10ECB, 0x10ECF}, {0x10EF0, 0x10EFB},
    {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070},
    {0x1133B, 0x1133B}, {0x11383, 0x11383}, {0x11385, 0x11385}, {0x1138E, 0x1138E},
    {0x11391, 0x11391}, {0x113C5, 0x113C5}, {0x113C7, 0x113C8}, {0x113CE, 0x113D0},
    {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11938, 0x11938}, {0x1193D, 0x1193E},
    {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47},
    {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97},
    {0x11F41, 0x11F42}, {0x16121, 0x16128}, {0x1612F, 0x1612F}, {0x16D68, 0x16D6A},
    {0x16FF0, 0x16FF1}, {0x1B123, 0x1B126}, {0x1CCD6, 0x1CCF9}, {0x1D127, 0x1D128},
    {0x1D250, 0x1D252}, {0x1D25B, 0x1D25C}, {0x1D25F, 0x1D25F}, {0x1D280, 0x1D281},
    {0x1D6A6, 0x1D6A6}, {0x1DF95, 0x1DF95}, {0x1DFCD, 0x1DFFF}, {0x1E030, 0x1E06D},
    {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
    {0x1E4EC, 0x1E4EF}, {0x1E5EE, 0x1E5EF}, {0x1E6E3, 0x1E6E3}, {0x1E6E6, 0x1E6E6},
    {0x1E6EE, 0x1E6EF}, {0x1E6F5, 0x1E6F5}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

/// Characters of combining class 0 that compose with the one before them (Unicode 9).
constexpr Range composing_starters[] = {
    {0x9BE, 0x9BE},     {0x9D7, 0x9D7},     {0xB3E, 0xB3E},     {0xB56, 0xB57},
    {0xBBE, 0xBBE},     {0xBD7, 0xBD7},     {0xCC2, 0xCC2},     {0xCD5, 0xCD6},
    {0xD3E, 0xD3E},     {0xD57, 0xD57},     {0xDCF, 0xDCF},     {0xDDF, 0xDDF},
    {0x102E, 0x102E},   {0x1161, 0x1175},   {0x11A8, 0x11C2},   {0x1B35, 0x1B35},
    {0x11127, 0x11127}, {0x1133E, 0x1133E}, {0x11357, 0x11357}, {0x114B0, 0x114B0},
    {0x114BA, 0x114BA}, {0x114BD, 0x114BD}, {0x115AF, 0x115AF}};

template <class Ranges>
bool is_in(const Ranges& ranges, char32_t character) noexcept {
  const auto* const found =
      std::lower_bound(std::begin(ranges), std::end(ranges), character,
                       [](const Range& range, char32_t wanted) { return range.second < wanted; });
  return found != std::end(ranges) && found->first <= character;
}

int combining_class(char32_t character) noexcept {
  return utf8proc_get_property(character)->combining_class;
}

bool composes(NormalForm form) noexcept {
  return form == NormalForm::nfc || form == NormalForm::nfkc;
}

const auto composition = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

utf8proc_option_t decomposition(NormalForm form) noexcept {
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                        (compatible ? UTF8PROC_COMPAT : 0));
}

/// No character decomposes into more (U+FDFA into 18).
using Decomposed = std::array<utf8proc_int32_t, 32>;

std::size_t decompose(NormalForm form, char32_t character, Decomposed& parts) {
  int boundary = 0;
  const auto count = utf8proc_decompose_char(character, parts.data(), std::ssize(parts),
                                             decomposition(form), &boundary);
  FOURFOLD_EXPECT(count > 0 && count <= std::ssize(parts));
  return count;
}

/// Whether the form may change the character, or move it, or join it to the one before.
bool may_change(NormalForm form, char32_t character) {
  // Everything below U+0300 is its own NFC and composes with nothing before it.
  if (character < (form == NormalForm::nfc ? 0x300 : 0x80) || is_in(young, character)) {
    return false;
  }
  if (combining_class(character) != 0 || (composes(form) && is_in(composing_starters, character))) {
    return true;
  }
  if (form == NormalForm::nfc && character >= 0xAC00 && character <= 0xD7A3) {
    return false;  // syllables of Hangul are composed already
  }
  Decomposed parts{};
  const utf8proc_int32_t itself = character;
  return decompose(form, character, parts) > 1 || parts[0] != itself;
}

/// Puts marks in order of their classes, those of one class as they stood.
template <class Character, class ClassOf>
void order_marks(std::vector<Character>& characters, const ClassOf& class_of) {
  const auto is_mark = [&](const Character& one) { return class_of(one) != 0; };
  for (auto begin = characters.begin(); begin != characters.end();) {
    begin = std::find_if(begin, characters.end(), is_mark);
    const auto end = std::find_if_not(begin, characters.end(), is_mark);
    std::stable_sort(begin, end, [&](const Character& a, const Character& b) {
      return class_of(a) < class_of(b);
    });
    begin = end;
  }
}

/// Appends the form of a stretch that touches nothing around it.
void normalize_stretch(NormalForm form, std::string_view text, std::string& normal) {
  std::vector<utf8proc_int32_t> characters;
  while (!text.empty()) {
    Decomposed parts{};
    const std::size_t count = decompose(form, take_character(text), parts);
    characters.insert(characters.end(), parts.begin(), parts.begin() + count);
  }
  order_marks(characters, combining_class);
  auto length = std::ssize(characters);
  if (composes(form)) {
    length = utf8proc_normalize_utf32(characters.data(), length, composition);
  }
  for (std::ptrdiff_t i = 0; i < length; ++i) {
    append_character(characters[i], normal);
  }
}

/// A character of a normal form, and what the library makes of it when it counts places: 0, it
/// stands for the next character of the text; 1, it was put in; -n, it stands for the next one and
/// n after that.
struct Placed {
  char32_t character = 0;
  std::ptrdiff_t change = 0;
};

int class_in_unicode_9(char32_t character) noexcept {
  return is_in(young, character) ? 0 : combining_class(character);
}

/// In the order of a normal form.
std::vector<Placed> decomposed(NormalForm form, std::string_view text) {
  std::vector<Placed> placed;
  while (!text.empty()) {
    const char32_t character = take_character(text);
    Decomposed parts{};
    parts[0] = character;
    const std::size_t count = is_in(young, character) ? 1 : decompose(form, character, parts);
    for (std::size_t i = 0; i < count; ++i) {
      Placed& part = placed.emplace_back();
      part.character = parts[i];
      part.change = i > 0 ? 1 : 0;
    }
  }
  order_marks(placed, [](const Placed& one) { return class_in_unicode_9(one.character); });
  return placed;
}

std::optional<char32_t> composed(char32_t first, char32_t second) {
  if (is_in(young, first) || is_in(young, second)) {
    return std::nullopt;
  }
  std::array<utf8proc_int32_t, 2> pair{};
  pair[0] = first;
  pair[1] = second;
  return utf8proc_normalize_utf32(pair.data(), std::ssize(pair), composition) == 1
             ? std::optional<char32_t>(pair[0])
             : std::nullopt;
}

/// Puts together what composes: a part that goes into a character before it is one less that stands
/// for a character of the text.
std::vector<Placed> recomposed(const std::vector<Placed>& parts) {
  std::vector<Placed> placed;
  std::optional<std::size_t> starter;  // in `placed`, what the next may compose with
  int last_class = 0;                  // of the marks between that and the next
  for (const Placed& part : parts) {
    const int part_class = class_in_unicode_9(part.character);
    const bool is_blocked = starter && last_class != 0 && last_class >= part_class;
    const auto both = starter && !is_blocked ? composed(placed[*starter].character, part.character)
                                             : std::nullopt;
    if (both) {
      placed[*starter] = {*both, placed[*starter].change + part.change - 1};
      continue;
    }
    if (part_class == 0) {
      starter = placed.size();
    }
    last_class = part_class;
    placed.push_back(part);
  }
  return placed;
}

}  // namespace

bool is_white_space(char32_t character) noexcept {
  return is_in(white_space, character);
}

bool is_word_character(char32_t character) noexcept {
  switch (utf8proc_category(character)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:  // joiners, and letters in circles and squares
      constexpr Range others[] = {{0x200C, 0x200D},
                                  {0x24B6, 0x24E9},
                                  {0x1F130, 0x1F149},
                                  {0x1F150, 0x1F169},
                                  {0x1F170, 0x1F189}};
      return is_in(others, character);
  }
}

char32_t last_character(std::string_view text) noexcept {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && (text[begin] & 0xC0) == 0x80) {
    --begin;
  }
  text.remove_prefix(begin);
  return take_character(text);
}

void append_character(char32_t character, std::string& text) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto count = utf8proc_encode_char(character, bytes.data());
  text.append(bytes.begin(), bytes.begin() + count);
}

void lower_case(std::string_view text, std::string& lower) {
  lower.clear();
  while (!text.empty()) {
    const char32_t character = take_character(text);
    append_character(utf8proc_tolower(character), lower);
    if (character == 0x130) {  // the only one that becomes two: i and a dot above
      append_character(0x307, lower);
    }
  }
}

std::u32string case_fold(char32_t character) {
  Decomposed parts{};
  int boundary = 0;
  const auto count = utf8proc_decompose_char(character, parts.data(), std::ssize(parts),
                                             UTF8PROC_CASEFOLD, &boundary);
  FOURFOLD_EXPECT(count > 0 && count <= std::ssize(parts));
  return {parts.begin(), parts.begin() + count};
}

bool normalize(NormalForm form, std::string_view text, std::string& normal) {
  std::size_t copied = 0;  // bytes of `text` that `normal` holds
  bool changed = false;
  std::size_t before = 0;  // where the character before `at` begins, if it takes part
  bool has_before = false;
  for (std::size_t at = 0; at < text.size();) {
    if ((text[at] & 0x80) == 0) {
      before = at++;
      has_before = true;
      continue;
    }
    std::string_view rest = text.substr(at);
    char32_t character = take_character(rest);
    if (!may_change(form, character)) {
      before = at;
      has_before = !is_in(young, character);
      at = text.size() - rest.size();
      continue;
    }
    const std::size_t begin = has_before ? before : at;
    do {
      at = text.size() - rest.size();
    } while (!rest.empty() && may_change(form, take_character(rest)));
    if (!changed) {
      normal.clear();
      changed = true;
    }
    normal += text.substr(copied, begin - copied);
    normalize_stretch(form, text.substr(begin, at - begin), normal);
    copied = at;
    has_before = false;
  }
  if (changed) {
    normal += text.substr(copied);
  }
  return changed;
}

std::size_t normal_size_of_first(NormalForm form, std::string_view text, std::size_t bytes) {
  std::string_view after = text.substr(bytes);
  std::size_t end = bytes;  // what comes from there on touches nothing before it
  while (!after.empty() && may_change(form, take_character(after))) {
    end = text.size() - after.size();
  }
  std::vector<Placed> placed = decomposed(form, text.substr(0, end));
  placed = composes(form) ? recomposed(placed) : std::move(placed);
  std::string normal;
  std::string_view rest = text;
  for (const Placed& one : placed) {
    const std::size_t read = text.size() - rest.size();
    if (read >= bytes + (one.change > 0 ? 1 : 0)) {
      break;
    }
    append_character(one.character, normal);
    for (std::ptrdiff_t taken = one.change; taken <= 0 && !rest.empty(); ++taken) {
      take_character(rest);
    }
  }
  return normal.size();
}

namespace {

using LongFolding = std::pair<char32_t, std::u32string>;

/// All of them (104 since Unicode 5.1), in the order of the characters.
const std::vector<LongFolding>& long_foldings() {
  static const std::vector<LongFolding> known = [] {
    std::vector<LongFolding> found;
    for (char32_t character = 0x80; character <= 0xFFFF; ++character) {
      std::u32string folded = case_fold(character);
      if (folded.size() > 1) {
        found.emplace_back(character, std::move(folded));
      }
    }
    return found;
  }();
  return known;
}

}  // namespace

std::optional<char32_t> folding_to_several(char32_t first, char32_t last) {
  const auto found = std::lower_bound(
      long_foldings().begin(), long_foldings().end(), first,
      [](const LongFolding& folding, char32_t wanted) { return folding.first < wanted; });
  return found == long_foldings().end() || found->first > last ? std::nullopt
                                                               : std::optional(found->first);
}

std::optional<char32_t> folding_to_end_of(std::u32string_view text) {
  FOURFOLD_EXPECT(!text.empty());
  if (case_fold(text.back()).size() > 1) {
    return text.back();
  }
  std::u32string folded;
  for (const char32_t character : text) {
    folded += case_fold(character);
  }
  for (const auto& [character, long_form] : long_foldings()) {
    if (folded.ends_with(long_form)) {
      return character;
    }
  }
  return std::nullopt;
}

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size()) {
    if (text.size() - end >= 8) {  // eight ASCII characters at once
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + end, sizeof word);
      if ((word & 0x8080808080808080ULL) == 0) {
        end += 8;
        continue;
      }
    }
    const std::size_t bytes = utf8_character_bytes(text.substr(end));
    if (bytes == 0) {
      break;
    }
    end += bytes;
  }
  return end;
}

std::size_t invalid_utf8_prefix(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && utf8_character_bytes(text.substr(end)) == 0) {
    ++end;
  }
  return end;
}

std::size_t invalid_utf8_bytes(std::string_view text) {
  std::size_t all = 0;
  while (!text.empty()) {
    text.remove_prefix(valid_utf8_prefix(text));
    const std::size_t next = invalid_utf8_prefix(text);
    all += next;
    text.remove_prefix(next);
  }
  return all;
}

std::size_t begun_utf8_suffix(std::string_view text) {
  for (std::size_t bytes = 1; bytes <= std::min<std::size_t>(3, text.size()); ++bytes) {
    const std::string begun(text.substr(text.size() - bytes));
    const unsigned char lead = begun.front();
    if (lead < 0x80) {
      return 0;
    }
    if (lead < 0xC0) {
      continue;  // inside a character
    }
    const std::size_t whole = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    const auto completes = [&](char filler) {
      return bytes < whole &&
             utf8_character_bytes(begun + std::string(whole - bytes, filler)) == whole;
    };
    return completes('\x80') || completes('\xBF') ? bytes : 0;
  }
  return 0;
}

}  // namespace fourfold::data::detail
