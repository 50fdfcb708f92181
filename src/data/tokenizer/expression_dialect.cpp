// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/split_expression.hpp"
#include "unicode/unicode_text.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace fourfold::data::detail {
namespace {

std::string range_text(unsigned first, unsigned last) {
  return fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", first, last);
}

std::string white_space_ranges() {
  std::string ranges;
  for (const auto& [first, last] : white_space) {
    ranges += range_text(first, last);
  }
  return ranges;
}

std::string other_ranges() {
  std::string ranges;
  unsigned next = 0;
  for (const auto& [first, last] : white_space) {
    ranges += range_text(next, first - 1);
    next = last + 1;
  }
  return ranges + range_text(next, 0x10ffff);
}

/// {n}, {n,}, {,m} or {n,m}.
struct Interval {
  unsigned low = 0;
  std::optional<unsigned> high;
  bool is_fixed = false;   ///< {n}
  std::size_t length = 0;  ///< in the expression

  bool is_once() const { return low == 1 && high == 1U; }
};

/// The number that a text begins with is taken off it. One that is too large becomes one that PCRE2
/// refuses.
std::optional<unsigned> take_number(std::string_view& text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::size_t digits = end - text.data();
  text.remove_prefix(digits);
  if (digits == 0) {
    return std::nullopt;
  }
  return error == std::errc() ? value : std::numeric_limits<unsigned>::max();
}

/// The interval that a text begins with; anything else in braces is text to Oniguruma.
/// @pre text begins with a brace
std::optional<Interval> interval_of(std::string_view text) {
  std::string_view rest = text.substr(1);
  const auto low = take_number(rest);
  const bool is_fixed = !rest.starts_with(',');
  rest.remove_prefix(is_fixed ? 0 : 1);
  const auto high = is_fixed ? low : take_number(rest);
  if ((!low && !high) || !rest.starts_with('}')) {
    return std::nullopt;
  }
  return Interval{low.value_or(0), high, is_fixed, text.size() - rest.size() + 1};
}

class Translator {
 public:
  Translator(std::string_view from, std::string_view source) : from_(from), source_(source) {}

  std::string result() {
    while (at_ < from_.size()) {
      if (inside_class_) {
        class_part();
      } else {
        outer_part();
      }
    }
    return std::move(to_);
  }

 private:
  /// A character, or a set of them.
  struct Item {
    std::size_t length;  ///< in the expression
    std::string to;      ///< for PCRE2
    std::optional<char32_t> character;
  };
  struct Group {
    std::size_t begin;          ///< in to_
    bool is_plain;              ///< (?:
    bool ignored_case_outside;  ///< what holds again after it
  };

  [[noreturn]] void refuse(std::string_view construct) const {
    throw UserError(ExitCode::config,
                    format_message("{}: the splitting expression '{}' uses {} (not supported: it "
                                   "could split differently here than in the tokenizers library); "
                                   "use another tokenizer (docs/data.md lists the kinds)",
                                   source_, from_, construct));
  }

  [[noreturn]] void refuse_folding(char32_t character) const {
    std::string spelled;
    append_character(character, spelled);
    refuse(format_message("'{}', or the several characters that it folds to, under (?i:", spelled));
  }

  bool follows(std::string_view text) const { return from_.substr(at_).starts_with(text); }

  void copy(std::size_t count) {
    to_ += from_.substr(at_, count);
    at_ += count;
  }

  void replace(std::size_t count, const std::string& by) {
    to_ += by;
    at_ += count;
  }

  Item plain_item() const {
    std::string_view rest = from_.substr(at_);
    const char32_t character = take_character(rest);
    const std::size_t length = from_.size() - at_ - rest.size();
    return {length, std::string(from_.substr(at_, length)), character};
  }

  Item escaped_item() const {
    const char kind = at_ + 1 < from_.size() ? from_[at_ + 1] : '\0';
    switch (kind) {
      case 's':
        return set(2, inside_class_ ? white_space_ranges() : "[" + white_space_ranges() + "]");
      case 'S':
        return cased_set(2, inside_class_ ? other_ranges() : "[" + other_ranges() + "]");
      case 'd':
        return set(2, "\\p{Nd}");
      case 'D':
        return cased_set(2, "\\P{Nd}");
      case 'p':
      case 'P':
        return property();
      case 'u':
        return code_point();
      case 'x':
        return braced_code_point();
      case 'r':
        return {2, "\\r", U'\r'};
      case 'n':
        return {2, "\\n", U'\n'};
      case 't':
        return {2, "\\t", U'\t'};
      case 'f':
        return {2, "\\f", U'\f'};
      default:
        if (std::ispunct(static_cast<unsigned char>(kind)) != 0) {
          return {2, std::string(from_.substr(at_, 2)), kind};
        }
        refuse(format_message("the escape '{}'", from_.substr(at_, 2)));
    }
  }

  static Item set(std::size_t length, std::string to) {
    return {length, std::move(to), std::nullopt};
  }

  /// A set with letters in it. By itself it means what it says, also under (?i: (newer versions of
  /// PCRE2 would take either case); in [...] all that its characters fold to would count.
  Item cased_set(std::size_t length, const std::string& to) const {
    if (ignores_case_ && inside_class_) {
      refuse(format_message("'{}' in [...] under (?i:", from_.substr(at_, length)));
    }
    return set(length, ignores_case_ ? "(?-i:" + to + ")" : to);
  }

  /// \u3000, which PCRE2 writes \x{3000}.
  Item code_point() const {
    const std::string_view digits = from_.substr(at_ + 2, 4);
    if (digits.size() != 4 || !std::all_of(digits.begin(), digits.end(),
                                           [](unsigned char c) { return std::isxdigit(c) != 0; })) {
      refuse("the escape '\\u' without four hexadecimal digits");
    }
    return {6, fmt::format("\\x{{{}}}", digits), from_hexadecimal(digits)};
  }

  /// \x{3000}, the same to both; without braces it is a byte to one of them.
  Item braced_code_point() const {
    const std::size_t close = std::min(from_.find('}', at_), from_.size());
    const std::string_view braced = from_.substr(at_ + 2, close - at_ - 2);
    if (!braced.starts_with('{') || braced.size() < 2 || braced.size() > 7 ||
        !std::all_of(braced.begin() + 1, braced.end(),
                     [](unsigned char c) { return std::isxdigit(c) != 0; })) {
      refuse("the escape '\\x' without hexadecimal digits in braces");
    }
    const std::size_t length = close + 1 - at_;
    return {length, std::string(from_.substr(at_, length)), from_hexadecimal(braced.substr(1))};
  }

  static char32_t from_hexadecimal(std::string_view digits) {
    std::uint32_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    return value;
  }

  /// \p{L}, \p{^Lu}, \P{Han}: names of one or two letters are general categories, longer ones
  /// scripts.
  Item property() const {
    const std::size_t close = from_.find('}', at_);
    if (at_ + 2 >= from_.size() || from_[at_ + 2] != '{' || close == std::string_view::npos) {
      refuse(format_message("the escape '{}' without a name in braces", from_.substr(at_, 2)));
    }
    std::string_view name = from_.substr(at_ + 3, close - at_ - 3);
    const std::string_view negation = name.starts_with('^') ? "^" : "";
    name.remove_prefix(negation.size());
    if (name.empty() || !std::all_of(name.begin(), name.end(),
                                     [](unsigned char c) { return std::isalpha(c) != 0; })) {
      refuse(format_message("the property '{}'", name));
    }
    return cased_set(close + 1 - at_, fmt::format("{}{{{}{}{}}}", from_.substr(at_, 2), negation,
                                                  name.size() > 2 ? "sc:" : "", name));
  }

  void class_part() {
    if (from_[at_] == '[' || follows("&&")) {
      refuse("a set inside [...]");
    }
    if (follows("]")) {
      inside_class_ = false;
      return copy(1);
    }
    if (from_[at_] == '-' && range_begin_ && !is_range_ && !follows("-]")) {
      is_range_ = true;
      return copy(1);
    }
    const Item item = from_[at_] == '\\' ? escaped_item() : plain_item();
    if (is_range_ && !item.character) {
      refuse("a set as an end of a range");
    }
    if (ignores_case_ && item.character) {
      if (const auto found =
              folding_to_several(is_range_ ? *range_begin_ : *item.character, *item.character)) {
        refuse_folding(*found);
      }
    }
    range_begin_ = is_range_ ? std::nullopt : item.character;
    is_range_ = false;
    // To PCRE2 [.a.] is more than three characters, and a - after a range is not always one.
    const bool is_special =
        item.length == 1 && std::string_view("-.:=").find(item.to) != std::string_view::npos;
    replace(item.length, (is_special ? "\\" : "") + item.to);
  }

  void outer_part() {
    switch (from_[at_]) {
      case '[':
        begin_atom();
        copy(follows("[^") ? 2 : 1);
        inside_class_ = true;
        range_begin_ = std::nullopt;
        if (follows("]")) {
          refuse("']' as the first character of [...]");
        }
        return;
      case '^':  // at the beginning of any line, but not after a line end that ends the text
        return atom(set(1, "(?:\\A|(?<=\\n)(?!\\z))"));
      case '$':  // at the end of any line
        return atom(set(1, "(?=\\n|\\z)"));
      case '.':
        return atom(set(1, "."));
      case '|':
        end_atoms();
        return copy(1);
      case '(':
        return open_group();
      case ')':
        return close_group();
      case '*':
      case '+':
      case '?':
        return quantify();
      case '{':
        return braces();
      case '\\':
        return atom(escaped_item());
      default:
        return atom(plain_item());
    }
  }

  /// What a quantifier after it repeats begins here.
  void begin_atom() {
    atom_begin_ = to_.size();
    is_repeated_ = false;
    text_.clear();
  }

  void end_atoms() {
    begin_atom();
    atom_begin_ = std::string::npos;
  }

  void atom(const Item& item) {
    const std::u32string before = item.character && ignores_case_ ? text_ : std::u32string();
    begin_atom();
    replace(item.length, item.to);
    if (item.character && ignores_case_) {
      text_ = (repeats_here() ? std::u32string() : before) + *item.character;
      if (const auto found = folding_to_end_of(text_)) {
        refuse_folding(*found);
      }
      text_.erase(0, text_.size() - std::min<std::size_t>(text_.size(), 2));
      if (repeats_here()) {
        text_.clear();
      }
    }
  }

  /// Whether what was copied last is repeated.
  bool repeats_here() const {
    const std::string_view rest = from_.substr(at_);
    const auto interval = rest.starts_with('{') ? interval_of(rest) : std::nullopt;
    return interval ? !interval->is_once()
                    : rest.starts_with('*') || rest.starts_with('+') || rest.starts_with('?');
  }

  /// *, +, ? and, with another ? or +, their lazy and possessive forms.
  void quantify() {
    const std::string_view rest = from_.substr(at_);
    const bool has_mode = rest.size() > 1 && (rest[1] == '?' || rest[1] == '+');
    repeat(has_mode ? 2 : 1, std::string(rest.substr(0, has_mode ? 2 : 1)));
  }

  /// The only mode of an interval is the lazy one of {n,m}?. A ? after {n}, and any +, are
  /// quantifiers of their own; bounds in the wrong order make it possessive.
  void braces() {
    const auto interval = interval_of(from_.substr(at_));
    if (!interval) {
      return atom({1, "\\{", U'{'});
    }
    const bool is_swapped = interval->high && *interval->high < interval->low;
    const unsigned low = is_swapped ? *interval->high : interval->low;
    const auto high = is_swapped ? interval->low : interval->high;
    std::string to = fmt::format("{{{},{}}}", low, high ? std::to_string(*high) : "");
    const bool is_lazy =
        !interval->is_fixed && !is_swapped && from_.substr(at_ + interval->length).starts_with('?');
    to += is_swapped ? "+" : is_lazy ? "?" : "";
    repeat(interval->length + (is_lazy ? 1 : 0), to);
  }

  /// A second quantifier repeats what the first one does; PCRE2 would read it as a mode of the
  /// first, or not at all.
  void repeat(std::size_t count, const std::string& by) {
    if (is_repeated_ && atom_begin_ != std::string::npos) {
      to_.insert(atom_begin_, "(?:");
      to_ += ')';
    }
    replace(count, by);
    is_repeated_ = true;
  }

  void open_group() {
    std::string_view kind = "(";
    if (follows("(?")) {
      const auto known = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};
      const auto* const found =
          std::find_if(known.begin(), known.end(), [&](const char* one) { return follows(one); });
      if (found == known.end()) {
        refuse(format_message("the group '{}'", from_.substr(at_, 4)));
      }
      kind = *found;
    }
    groups_.push_back({to_.size(), kind == "(?:", ignores_case_});
    // To Oniguruma text goes on in a (?:...) that is not repeated.
    const std::u32string text = groups_.back().is_plain ? text_ : std::u32string();
    end_atoms();
    text_ = text;
    ignores_case_ = ignores_case_ || kind == "(?i:";
    copy(kind.size());
  }

  void close_group() {
    copy(1);
    if (groups_.empty()) {
      return;  // PCRE2 refuses it
    }
    const Group group = groups_.back();
    groups_.pop_back();
    const std::u32string text = group.is_plain && !repeats_here() ? text_ : std::u32string();
    begin_atom();
    atom_begin_ = group.begin;
    text_ = text;
    ignores_case_ = group.ignored_case_outside;
  }

  std::string_view from_;
  std::string_view source_;
  std::string to_;
  std::size_t at_ = 0;
  std::vector<Group> groups_;  ///< that are open
  bool ignores_case_ = false;
  std::size_t atom_begin_ = std::string::npos;  ///< in to_, of what a quantifier would repeat
  bool is_repeated_ = false;                    ///< the atom has a quantifier
  std::u32string text_;  ///< under (?i:, the last characters that stand side by side as text
  bool inside_class_ = false;
  std::optional<char32_t> range_begin_;  ///< in a class, the character before
  bool is_range_ = false;                ///< in a class, after the - of a range
};

}  // namespace

const std::string whitespace_expression = fmt::format("[{0}]+|[^\\s{0}]+", word_character_ranges);

std::string to_pcre2(std::string_view expression, std::string_view source) {
  return Translator(expression, source).result();
}

}  // namespace fourfold::data::detail
