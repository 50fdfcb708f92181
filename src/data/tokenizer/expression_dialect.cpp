// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/split_expression.hpp"
#include "unicode/unicode_text.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace fourfold::data::detail {
namespace {

std::string white_space_ranges() {
  std::string ranges;
  for (const auto& [first, last] : white_space) {
    ranges += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", static_cast<unsigned>(first),
                          static_cast<unsigned>(last));
  }
  return ranges;
}

std::string other_ranges() {
  std::string ranges;
  unsigned next = 0;
  for (const auto& [first, last] : white_space) {
    ranges += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", next, static_cast<unsigned>(first) - 1);
    next = static_cast<unsigned>(last) + 1;
  }
  return ranges + fmt::format("\\x{{{:x}}}-\\x{{10ffff}}", next);
}

class Translator {
 public:
  Translator(std::string_view from, std::string_view source) : from_(from), source_(source) {}

  std::string result() {
    while (at_ < from_.size()) {
      if (from_[at_] == '\\') {
        escape();
      } else if (inside_class_) {
        class_character();
      } else {
        outer_character();
      }
    }
    return std::move(to_);
  }

 private:
  [[noreturn]] void refuse(std::string_view construct) const {
    throw UserError(
        ExitCode::config,
        format_message("{}: the splitting expression '{}' uses {} (not supported: it could split "
                       "differently here than in the tokenizers library); use a tokenizer "
                       "of the GPT-2 or Llama-3 kind",
                       source_, from_, construct));
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

  void escape() {
    const char kind = at_ + 1 < from_.size() ? from_[at_ + 1] : '\0';
    switch (kind) {
      case 's':
        return replace(2, inside_class_ ? white_space_ranges() : "[" + white_space_ranges() + "]");
      case 'S':
        return replace(2, inside_class_ ? other_ranges() : "[" + other_ranges() + "]");
      case 'd':
        return replace(2, "\\p{Nd}");
      case 'D':
        return replace(2, "\\P{Nd}");
      case 'p':
      case 'P':
        return property();
      case 'u':
        return code_point();
      case 'x':
        return braced_code_point();
      case 'r':
      case 'n':
      case 't':
      case 'f':
        return copy(2);
      default:
        if (std::ispunct(static_cast<unsigned char>(kind)) != 0) {
          return copy(2);
        }
        refuse(format_message("the escape '{}'", from_.substr(at_, 2)));
    }
  }

  /// \u3000, which PCRE2 writes \x{3000}.
  void code_point() {
    const std::string_view digits = from_.substr(at_ + 2, 4);
    if (digits.size() != 4 || !std::all_of(digits.begin(), digits.end(),
                                           [](unsigned char c) { return std::isxdigit(c) != 0; })) {
      refuse("the escape '\\u' without four hexadecimal digits");
    }
    replace(6, fmt::format("\\x{{{}}}", digits));
  }

  /// \x{3000}, the same to both; without braces it is a byte to one of them.
  void braced_code_point() {
    const std::size_t close = std::min(from_.find('}', at_), from_.size());
    const std::string_view braced = from_.substr(at_ + 2, close - at_ - 2);
    if (!braced.starts_with('{') || braced.size() < 2 || braced.size() > 7 ||
        !std::all_of(braced.begin() + 1, braced.end(),
                     [](unsigned char c) { return std::isxdigit(c) != 0; })) {
      refuse("the escape '\\x' without hexadecimal digits in braces");
    }
    copy(close + 1 - at_);
  }

  /// \p{L}, \p{^Lu}, \P{Han}: names of one or two letters are general categories, longer ones
  /// scripts.
  void property() {
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
    replace(close + 1 - at_, fmt::format("{}{{{}{}{}}}", from_.substr(at_, 2), negation,
                                         name.size() > 2 ? "sc:" : "", name));
  }

  void class_character() {
    if (from_[at_] == '[' || follows("&&")) {
      refuse("a set inside [...]");
    }
    inside_class_ = from_[at_] != ']';
    copy(1);
  }

  void outer_character() {
    switch (from_[at_]) {
      case '[':
        copy(follows("[^") ? 2 : 1);
        inside_class_ = true;
        if (follows("]")) {
          refuse("']' as the first character of [...]");
        }
        return;
      case '^':  // at the beginning of any line, but not after a line end that ends the text
        return replace(1, "(?:\\A|(?<=\\n)(?!\\z))");
      case '$':  // at the end of any line
        return replace(1, "(?=\\n|\\z)");
      case '(':
        return group();
      case '{':
        if (follows("{,")) {
          refuse("a repetition without lower bound");
        }
        return copy(1);
      case '}':
        if (follows("}+")) {
          refuse("'}+', which one reads as possessive and the other does not");
        }
        return copy(1);
      default:
        return copy(1);
    }
  }

  void group() {
    if (!follows("(?")) {
      return copy(1);
    }
    for (const std::string_view known : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"}) {
      if (follows(known)) {
        return copy(known.size());
      }
    }
    refuse(format_message("the group '{}'", from_.substr(at_, 4)));
  }

  std::string_view from_;
  std::string_view source_;
  std::string to_;
  std::size_t at_ = 0;
  bool inside_class_ = false;
};

}  // namespace

const std::string whitespace_expression = fmt::format("[{0}]+|[^\\s{0}]+", word_character_ranges);

std::string to_pcre2(std::string_view expression, std::string_view source) {
  return Translator(expression, source).result();
}

}  // namespace fourfold::data::detail
