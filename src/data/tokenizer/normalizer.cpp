// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/pre_tokenizer.hpp"
#include "unicode/unicode_text.hpp"

namespace fourfold::data::detail {
namespace {

Piece stripped(Piece piece, bool left, bool right) {
  while (left && !piece.text.empty()) {
    std::string_view rest = piece.text;
    if (!is_white_space(take_character(rest))) {
      break;
    }
    piece = piece.part(piece.text.size() - rest.size());
  }
  while (right && !piece.text.empty() && is_white_space(last_character(piece.text))) {
    std::string last;
    append_character(last_character(piece.text), last);
    piece = piece.part(0, piece.text.size() - last.size());
  }
  return piece;
}

}  // namespace

Normalizer::Normalizer(const std::vector<NormalizeStep>& steps, std::string_view source)
    : steps_(steps) {
  for (const NormalizeStep& step : steps_) {
    auto& pattern = patterns_.emplace_back();
    if (step.kind == NormalizeStep::Kind::replace) {
      pattern.emplace(step.pattern, source);
      pattern->refuse_empty_matches("a Replace normalizer");
    }
  }
}

Piece Normalizer::apply(Piece piece) {
  std::size_t changes = 0;
  for (std::size_t number = 0; number < steps_.size(); ++number) {
    std::string& free = buffers_[changes % 2];
    const Piece after = apply(number, piece, free);
    changes += after.text.data() == free.data() ? 1 : 0;
    piece = after;
  }
  return piece;
}

Piece Normalizer::apply(std::size_t number, Piece piece, std::string& changed) {
  const NormalizeStep& step = steps_[number];
  switch (step.kind) {
    case NormalizeStep::Kind::form:
      if (!normalize(step.form, piece.text, changed)) {
        return piece;
      }
      return {changed, piece.from_first == 0
                           ? 0
                           : normal_size_of_first(step.form, piece.text, piece.from_first)};
    case NormalizeStep::Kind::replace:
      return patterns_[number]->replace(piece, step.content, changed);
    case NormalizeStep::Kind::prepend:
      if (piece.text.empty()) {
        return piece;
      }
      changed = step.content;
      changed += piece.text;
      return {changed, piece.from_first > 0 ? step.content.size() + piece.from_first : 0};
    case NormalizeStep::Kind::strip:
      return stripped(piece, step.left, step.right);
    case NormalizeStep::Kind::lower_case: {
      lower_case(piece.text.substr(0, piece.from_first), changed);
      const std::size_t from_first = changed.size();
      lower_case(piece.text, changed);
      return {changed, from_first};
    }
  }
  return piece;
}

}  // namespace fourfold::data::detail
