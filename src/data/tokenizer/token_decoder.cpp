// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/token_decoder.hpp"

#include "tokenizer/split_expression.hpp"
#include "unicode/unicode_text.hpp"

#include <fourfold/data/tokenizer.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace fourfold::data::detail {

/// Takes tokens, and gives others to the step after it.
class TokenDecoder::Step {
 public:
  explicit Step(Step* next) : next_(next) {}
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  virtual ~Step() = default;

  virtual void take(std::string token) = 0;
  /// No further token comes.
  virtual void finish() { next().finish(); }

 protected:
  Step& next() const { return *next_; }

 private:
  Step* next_;
};

namespace {

using Step = TokenDecoder::Step;

constexpr const char* replacement_character = "\uFFFD";

/// The end of the chain.
class Output final : public Step {
 public:
  explicit Output(std::string** text) : Step(nullptr), text_(text) {}
  void take(std::string token) override { **text_ += token; }
  void finish() override {}

 private:
  std::string** text_;
};

/// Tokens of a file without a decoder.
class Spaced final : public Step {
 public:
  using Step::Step;
  void take(std::string token) override {
    next().take(std::exchange(is_first_, false) ? std::move(token) : " " + token);
  }

 private:
  bool is_first_ = true;
};

class ByteLevel final : public Step {
 public:
  using Step::Step;
  void take(std::string token) override { next().take(bytes_of_spelling(token).value_or(token)); }
};

class ByteFallback final : public Step {
 public:
  using Step::Step;
  void take(std::string token) override {
    if (const auto byte = byte_of(token)) {
      bytes_.push_back(static_cast<char>(*byte));
      return;
    }
    flush();
    next().take(std::move(token));
  }
  void finish() override {
    flush();
    next().finish();
  }

 private:
  /// <0x0A>: 10.
  static std::optional<unsigned> byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with(">")) {
      return std::nullopt;
    }
    unsigned byte = 0;
    const char* end = token.data() + 5;
    const auto result = std::from_chars(token.data() + 3, end, byte, 16);
    return result.ec == std::errc() && result.ptr == end ? std::optional(byte) : std::nullopt;
  }

  /// A row of bytes is text if all of it is; else each byte is a replacement character.
  void flush() {
    const std::string bytes = std::exchange(bytes_, {});
    if (valid_utf8_prefix(bytes) == bytes.size()) {
      if (!bytes.empty()) {
        next().take(bytes);
      }
      return;
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      next().take(replacement_character);
    }
  }

  std::string bytes_;
};

class Replace final : public Step {
 public:
  Replace(Step* next, const DecodeStep& step, std::string_view source)
      : Step(next), pattern_(step.pattern, source), content_(step.content) {
    pattern_.refuse_empty_matches("a Replace decoder");
  }
  void take(std::string token) override {
    std::string replaced;
    const Piece piece = pattern_.replace({token}, content_, replaced);
    next().take(std::move(piece.text.data() == token.data() ? token : replaced));
  }

 private:
  SplitExpression pattern_;
  std::string content_;
};

/// Strips every token, or (with one_text) the beginning of the text that all of them are.
class Strip final : public Step {
 public:
  Strip(Step* next, const DecodeStep& step, bool one_text)
      : Step(next), step_(step), left_(step.start), one_text_(one_text) {}
  void take(std::string token) override {
    std::string_view rest = token;
    for (; left_ > 0 && rest.starts_with(step_.content); --left_) {
      rest.remove_prefix(step_.content.size());
    }
    for (std::size_t i = 0; i < step_.stop && rest.ends_with(step_.content); ++i) {
      rest.remove_suffix(step_.content.size());
    }
    if (!one_text_) {
      left_ = step_.start;
    } else if (!rest.empty()) {
      left_ = 0;
    }
    next().take(std::string(rest));
  }

 private:
  DecodeStep step_;
  std::size_t left_;
  bool one_text_;
};

class Metaspace final : public Step {
 public:
  Metaspace(Step* next, const DecodeStep& step)
      : Step(next), mark_(step.content), drops_marks_(step.drops_first) {}
  void take(std::string token) override {
    const std::string_view blank = std::exchange(drops_marks_, false) ? "" : " ";
    std::string text;
    for (std::size_t done = 0; done < token.size();) {
      const std::size_t mark = std::min(token.find(mark_, done), token.size());
      text.append(token, done, mark - done);
      text += mark < token.size() ? blank : std::string_view();
      done = mark + mark_.size();
    }
    next().take(std::move(text));
  }

 private:
  std::string mark_;
  bool drops_marks_;
};

/// All tokens as one, which is complete at the end only. Makes UTF-8 of what is not.
class Fuse final : public Step {
 public:
  using Step::Step;
  void take(std::string token) override { all_ += token; }
  void finish() override {
    std::string text;
    for (std::string_view rest = all_; !rest.empty();) {
      const std::size_t valid = valid_utf8_prefix(rest);
      text += rest.substr(0, valid);
      rest.remove_prefix(valid);
      const std::size_t invalid = invalid_utf8_prefix(rest);
      text += invalid > 0 ? replacement_character : "";
      rest.remove_prefix(invalid);
    }
    next().take(std::move(text));
    next().finish();
  }

 private:
  std::string all_;
};

/// The steps with the fusing that ByteLevel implies, but without a fusing that only joins what is
/// joined anyway: it would hold back all text until the end.
std::vector<DecodeStep> prepared(const std::vector<DecodeStep>& steps) {
  std::vector<DecodeStep> all;
  for (const DecodeStep& step : steps) {
    all.push_back(step);
    if (step.kind == DecodeStep::Kind::byte_level) {
      all.push_back({.kind = DecodeStep::Kind::fuse});
    }
  }
  while (!all.empty() && all.back().kind == DecodeStep::Kind::fuse) {
    all.pop_back();
  }
  return all;
}

std::unique_ptr<Step> make_step(const DecodeStep& step, Step* next, bool one_text,
                                std::string_view source) {
  switch (step.kind) {
    case DecodeStep::Kind::byte_level:
      return std::make_unique<ByteLevel>(next);
    case DecodeStep::Kind::byte_fallback:
      return std::make_unique<ByteFallback>(next);
    case DecodeStep::Kind::fuse:
      return std::make_unique<Fuse>(next);
    case DecodeStep::Kind::replace:
      return std::make_unique<Replace>(next, step, source);
    case DecodeStep::Kind::strip:
      return std::make_unique<Strip>(next, step, one_text);
    case DecodeStep::Kind::metaspace:
      break;
  }
  return std::make_unique<Metaspace>(next, step);
}

}  // namespace

TokenDecoder::TokenDecoder(const std::optional<std::vector<DecodeStep>>& steps,
                           std::string_view source) {
  steps_.push_back(std::make_unique<Output>(&text_));
  if (!steps) {
    steps_.push_back(std::make_unique<Spaced>(steps_.back().get()));
    return;
  }
  const std::vector<DecodeStep> all = prepared(*steps);
  for (std::size_t i = all.size(); i-- > 0;) {
    const bool is_last = i + 1 == all.size();
    const bool after_fuse = i > 0 && all[i - 1].kind == DecodeStep::Kind::fuse;
    const bool one_text =
        is_last && after_fuse && all[i].kind == DecodeStep::Kind::strip && all[i].stop == 0;
    steps_.push_back(make_step(all[i], steps_.back().get(), one_text, source));
    i -= one_text ? 1 : 0;  // the text need not be complete
  }
}

TokenDecoder::~TokenDecoder() = default;

void TokenDecoder::take(const std::string& spelled, std::string& text) {
  text_ = &text;
  steps_.back()->take(spelled);
}

void TokenDecoder::finish(std::string& text) {
  text_ = &text;
  steps_.back()->finish();
}

}  // namespace fourfold::data::detail
