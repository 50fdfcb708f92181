// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/normalizer.hpp"

#include "unicode/unicode_text.hpp"

namespace fourfold::data::detail {
namespace {

std::string_view stripped(std::string_view text, bool left, bool right) {
  while (left && !text.empty()) {
    std::string_view rest = text;
    if (!is_white_space(take_character(rest))) {
      break;
    }
    text = rest;
  }
  while (right && !text.empty() && is_white_space(last_character(text))) {
    std::string last;
    append_character(last_character(text), last);
    text.remove_suffix(last.size());
  }
  return text;
}

}  // namespace

Normalizer::Normalizer(const std::vector<NormalizeStep>& steps, std::string_view source)
    : steps_(steps) {
  for (const NormalizeStep& step : steps_) {
    auto& pattern = patterns_.emplace_back();
    if (step.kind == NormalizeStep::Kind::replace) {
      pattern.emplace(step.pattern, source);
    }
  }
}

std::string_view Normalizer::apply(std::string_view piece) {
  std::size_t changes = 0;
  for (std::size_t number = 0; number < steps_.size(); ++number) {
    std::string& free = buffers_[changes % 2];
    const std::string_view after = apply(number, piece, free);
    changes += after.data() == free.data() ? 1 : 0;
    piece = after;
  }
  return piece;
}

std::string_view Normalizer::apply(std::size_t number, std::string_view piece,
                                   std::string& changed) {
  const NormalizeStep& step = steps_[number];
  switch (step.kind) {
    case NormalizeStep::Kind::form:
      return normalize(step.form, piece, changed) ? changed : piece;
    case NormalizeStep::Kind::replace:
      return patterns_[number]->replace(piece, step.content, changed) ? changed : piece;
    case NormalizeStep::Kind::prepend:
      if (piece.empty()) {
        return piece;
      }
      changed = step.content;
      changed += piece;
      return changed;
    case NormalizeStep::Kind::strip:
      return stripped(piece, step.left, step.right);
    case NormalizeStep::Kind::lower_case:
      lower_case(piece, changed);
      return changed;
  }
  return piece;
}

}  // namespace fourfold::data::detail
