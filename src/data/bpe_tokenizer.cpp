// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "added_tokens.hpp"
#include "bpe_description.hpp"
#include "bpe_model.hpp"
#include "split_expression.hpp"
#include "utf8.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/data/tokenizer.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace fourfold::data {
namespace {

using detail::AddedTokens;
using detail::BpeDescription;
using detail::BpeModel;
using detail::SplitExpression;
using detail::SplitStep;

std::optional<std::int32_t> find_end_of_text(const BpeDescription& description) {
  for (const char* known : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<|eot_id|>"}) {
    for (const detail::AddedToken& token : description.added) {
      if (token.content == known) {
        return token.id;
      }
    }
  }
  return std::nullopt;
}

/// Text goes through five sieves: added tokens of the first round, of the second round, runs of
/// bytes that are not UTF-8, the splitting steps, and what is left of it are words for the BPE.
class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(const BpeDescription& description)
      : model_(description),
        first_round_(description.added, true),
        second_round_(description.added, false),
        steps_(description.steps),
        end_of_text_(find_end_of_text(description)),
        description_(fmt::format("byte-level BPE, {} tokens, {} merges, {}", model_.vocab_size(),
                                 description.merges.size(), description.file.string())) {
    for (const SplitStep& step : steps_) {
      auto& expression = expressions_.emplace_back();
      if (step.kind != SplitStep::Kind::prefix_space) {
        expression.emplace(step.pattern,
                           step.kind == SplitStep::Kind::literal
                               ? SplitExpression::Kind::literal
                               : SplitExpression::Kind::expression,
                           description.file.string());
      }
    }
  }

  void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
    around_added_tokens(first_round_, text, ids, [&](std::string_view outer) {
      around_added_tokens(second_round_, outer, ids,
                          [&](std::string_view inner) { encode_plain(inner, ids); });
    });
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      if (id < 0 || id >= model_.vocab_size()) {
        throw UserError(ExitCode::data_corrupt,
                        fmt::format("token {} is outside the vocabulary [0, {}) of {}; the "
                                    "tokens were made with another tokenizer",
                                    id, model_.vocab_size(), description_));
      }
      text += model_.bytes_of(id);
    }
    return text;
  }

  std::int32_t vocab_size() const noexcept override { return model_.vocab_size(); }
  std::optional<std::int32_t> end_of_text() const noexcept override { return end_of_text_; }
  std::string description() const override { return description_; }

 private:
  /// Emits added tokens and hands the non-empty texts between them on.
  template <class Between>
  static void around_added_tokens(const AddedTokens& added, std::string_view text,
                                  std::vector<std::int32_t>& ids, Between&& between) {
    std::size_t done = 0;
    while (done < text.size()) {
      const auto match = added.find(text, done);
      const std::size_t end = match ? match->begin : text.size();
      if (end > done) {
        between(text.substr(done, end - done));
      }
      if (!match) {
        return;
      }
      ids.push_back(match->id);
      done = match->end;
    }
  }

  void encode_plain(std::string_view text, std::vector<std::int32_t>& ids) {
    while (!text.empty()) {
      const std::size_t valid = detail::valid_utf8_prefix(text);
      if (valid > 0) {
        split(0, text.substr(0, valid), ids);
        text.remove_prefix(valid);
      }
      const std::size_t invalid = detail::invalid_utf8_prefix(text);
      if (invalid > 0) {
        model_.encode(text.substr(0, invalid), ids);
        text.remove_prefix(invalid);
      }
    }
  }

  /// Applies steps number, number + 1, ... to a non-empty piece.
  void split(std::size_t number, std::string_view piece, std::vector<std::int32_t>& ids) {
    if (number == steps_.size()) {
      model_.encode(piece, ids);
      return;
    }
    const SplitStep& step = steps_[number];
    if (step.kind == SplitStep::Kind::prefix_space) {
      if (piece.starts_with(' ')) {
        split(number + 1, piece, ids);
      } else {
        split(number + 1, " " + std::string(piece), ids);
      }
      return;
    }
    std::size_t done = 0;
    while (done < piece.size()) {
      const auto match = expressions_[number]->find(piece, done);
      const std::size_t begin = match ? match->begin : piece.size();
      if (begin > done && step.keep != SplitStep::Keep::matches) {
        split(number + 1, piece.substr(done, begin - done), ids);
      }
      if (match && step.keep != SplitStep::Keep::between) {
        split(number + 1, piece.substr(begin, match->end - begin), ids);
      }
      done = match ? match->end : piece.size();
    }
  }

  BpeModel model_;
  AddedTokens first_round_;
  AddedTokens second_round_;
  std::vector<SplitStep> steps_;
  /// one per step; none for a prefix space
  std::vector<std::optional<SplitExpression>> expressions_;
  std::optional<std::int32_t> end_of_text_;
  std::string description_;
};

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer_json(const std::filesystem::path& file) {
  return std::make_unique<BpeTokenizer>(detail::read_tokenizer_json(file));
}

std::unique_ptr<Tokenizer> open_vocab_and_merges(const std::filesystem::path& vocab_json,
                                                 const std::filesystem::path& merges_txt) {
  return std::make_unique<BpeTokenizer>(detail::read_vocab_and_merges(vocab_json, merges_txt));
}

}  // namespace fourfold::data
