// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/pre_tokenizer.hpp"

#include <algorithm>

namespace fourfold::data::detail {
namespace {

using Behavior = SplitStep::Behavior;

/// Whether a span goes on with the one before it; each is a match or stands between two. With
/// MergedWithNext, what a match was joined to is closed.
bool are_joined(Behavior behavior, bool was_match, bool is_match) {
  switch (behavior) {
    case Behavior::contiguous:
      return is_match == was_match;
    case Behavior::merged_with_previous:
      return is_match && !was_match;
    case Behavior::merged_with_next:
      return !is_match && was_match;
    default:
      return false;
  }
}

}  // namespace

PreTokenizer::PreTokenizer(const std::vector<SplitStep>& steps, std::string_view source)
    : steps_(steps), buffers_(steps.size()) {
  for (const SplitStep& step : steps_) {
    auto& pattern = patterns_.emplace_back();
    if (step.kind == SplitStep::Kind::split) {
      pattern.emplace(step.pattern, source);
    }
  }
}

void PreTokenizer::split(std::size_t number, Piece piece, const Word& word) {
  if (number == steps_.size()) {
    word(piece.text);
    return;
  }
  const SplitStep& step = steps_[number];
  switch (step.kind) {
    case SplitStep::Kind::prefix_space:
      if (!piece.text.starts_with(' ')) {
        buffers_[number] = " ";
        piece.text = buffers_[number] += piece.text;
        piece.from_first += piece.from_first > 0 ? 1 : 0;
      }
      return split(number + 1, piece, word);
    case SplitStep::Kind::metaspace:
      return split_at_marks(number, piece, word);
    case SplitStep::Kind::split:
      return step.behavior == Behavior::isolated || step.behavior == Behavior::removed
                 ? split_at_matches(number, piece, word)
                 : split_merged(number, piece, word);
  }
}

void PreTokenizer::split_at_matches(std::size_t number, Piece piece, const Word& word) {
  const SplitStep& step = steps_[number];
  const bool removes = step.behavior == Behavior::removed;
  const bool keeps_matches = !removes || step.inverted;
  const bool keeps_between = !removes || !step.inverted;
  const auto keep = [&](std::size_t begin, std::size_t end, bool is_kept) {
    if (begin < end && is_kept) {
      split(number + 1, piece.part(begin, end - begin), word);
    }
  };
  std::size_t done = 0;
  patterns_[number]->for_each_match(piece.text, [&](SplitExpression::Match match) {
    keep(done, match.begin, keeps_between);
    keep(match.begin, match.end, keeps_matches);
    done = match.end;
  });
  keep(done, piece.text.size(), keeps_between);
}

void PreTokenizer::split_merged(std::size_t number, Piece piece, const Word& word) {
  const SplitStep& step = steps_[number];
  std::size_t begin = 0;          // of what is put together
  std::optional<bool> was_match;  // the span before
  const auto emit_until = [&](std::size_t end) {
    if (begin < end) {
      split(number + 1, piece.part(begin, end - begin), word);
    }
    begin = end;
  };
  // An empty match counts: it parts what stands around it.
  const auto add = [&](std::size_t at, bool is_match) {
    if (was_match && !are_joined(step.behavior, *was_match, is_match)) {
      emit_until(at);
    }
    was_match = is_match;
  };
  std::size_t done = 0;
  const auto add_between = [&](std::size_t end) {
    if (done < end) {
      add(done, step.inverted);
    }
  };
  patterns_[number]->for_each_match(piece.text, [&](SplitExpression::Match match) {
    add_between(match.begin);
    add(match.begin, !step.inverted);
    done = match.end;
  });
  add_between(piece.text.size());
  emit_until(piece.text.size());
}

void PreTokenizer::split_at_marks(std::size_t number, Piece piece, const Word& word) {
  const SplitStep& step = steps_[number];
  const Piece whole = marked(number, piece);
  if (!step.cuts) {
    return split(number + 1, whole, word);
  }
  for (std::size_t begin = 0; begin < whole.text.size();) {
    // A mark at `begin` belongs to the word it begins.
    const std::size_t after = begin + (whole.text.substr(begin).starts_with(step.mark) ? 1 : 0);
    const std::size_t end = std::min(whole.text.find(step.mark, after), whole.text.size());
    split(number + 1, whole.part(begin, end - begin), word);
    begin = end;
  }
}

Piece PreTokenizer::marked(std::size_t number, Piece piece) {
  const SplitStep& step = steps_[number];
  std::string& to = buffers_[number];
  to.clear();
  Piece changed;
  const bool prepends = step.prepend == SplitStep::Prepend::always ||
                        (step.prepend == SplitStep::Prepend::first && piece.from_first > 0);
  if (prepends && !piece.text.starts_with(' ') && !piece.text.starts_with(step.mark)) {
    to = step.mark;
    changed.from_first = piece.from_first > 0 ? step.mark.size() : 0;
  }
  const auto spaces = std::count(piece.text.begin(), piece.text.begin() + piece.from_first, ' ');
  changed.from_first += piece.from_first + spaces * (step.mark.size() - 1);
  for (std::size_t done = 0; done < piece.text.size();) {
    const std::size_t space = std::min(piece.text.find(' ', done), piece.text.size());
    to += piece.text.substr(done, space - done);
    to += space < piece.text.size() ? std::string_view(step.mark) : std::string_view();
    done = space + 1;
  }
  changed.text = to;
  return changed;
}

}  // namespace fourfold::data::detail
