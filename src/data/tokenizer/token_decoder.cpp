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

namespace {

/// A step gives what it makes of a token to the step after it.
using Take = TakeToken;

constexpr const char* replacement_character = "\uFFFD";

/// Tokens of a file without a decoder.
Take spaced(Take next) {
  return [next = std::move(next), is_first = true](std::optional<std::string> token,
                                                   std::string& text) mutable {
    if (token && !std::exchange(is_first, false)) {
      token->insert(0, " ");
    }
    next(std::move(token), text);
  };
}

Take byte_level(Take next) {
  return [next = std::move(next)](std::optional<std::string> token, std::string& text) {
    if (token) {
      token = bytes_of_spelling(*token).value_or(*token);
    }
    next(std::move(token), text);
  };
}

/// <0x0A>: 10.
std::optional<unsigned> byte_named(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with(">")) {
    return std::nullopt;
  }
  unsigned byte = 0;
  const char* end = token.data() + 5;
  const auto result = std::from_chars(token.data() + 3, end, byte, 16);
  return result.ec == std::errc() && result.ptr == end ? std::optional(byte) : std::nullopt;
}

/// A row of bytes is text if all of it is; else each byte is a replacement character.
Take byte_fallback(Take next) {
  return [next = std::move(next), row = std::string()](std::optional<std::string> token,
                                                       std::string& text) mutable {
    if (const auto byte = token ? byte_named(*token) : std::nullopt) {
      row.push_back(static_cast<char>(*byte));
      return;
    }
    const std::string bytes = std::exchange(row, {});
    if (valid_utf8_prefix(bytes) < bytes.size()) {
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        next(replacement_character, text);
      }
    } else if (!bytes.empty()) {
      next(bytes, text);
    }
    next(std::move(token), text);
  };
}

Take replace(const DecodeStep& step, std::string_view source, Take next) {
  SplitExpression pattern(step.pattern, source);
  pattern.refuse_empty_matches("a Replace decoder");
  return [next = std::move(next), pattern, content = step.content](std::optional<std::string> token,
                                                                   std::string& text) mutable {
    if (token) {
      std::string replaced;
      const Piece piece = pattern.replace({*token}, content, replaced);
      token = std::string(piece.text.data() == token->data() ? *token : replaced);
    }
    next(std::move(token), text);
  };
}

/// Strips every token, or (with one_text) the beginning of the text that all of them are.
Take strip(const DecodeStep& step, bool one_text, Take next) {
  return [next = std::move(next), step, one_text, left = step.start](
             std::optional<std::string> token, std::string& text) mutable {
    if (token) {
      std::string_view rest = *token;
      for (; left > 0 && rest.starts_with(step.content); --left) {
        rest.remove_prefix(step.content.size());
      }
      for (std::size_t i = 0; i < step.stop && rest.ends_with(step.content); ++i) {
        rest.remove_suffix(step.content.size());
      }
      if (!one_text) {
        left = step.start;
      } else if (!rest.empty()) {
        left = 0;
      }
      token = std::string(rest);
    }
    next(std::move(token), text);
  };
}

Take metaspace(const DecodeStep& step, Take next) {
  return [next = std::move(next), mark = step.content, drops_marks = step.drops_first](
             std::optional<std::string> token, std::string& text) mutable {
    if (token) {
      const std::string_view blank = std::exchange(drops_marks, false) ? "" : " ";
      std::string spaced;
      for (std::size_t done = 0; done < token->size();) {
        const std::size_t at = std::min(token->find(mark, done), token->size());
        spaced.append(*token, done, at - done);
        spaced += at < token->size() ? blank : std::string_view();
        done = at + mark.size();
      }
      token = std::move(spaced);
    }
    next(std::move(token), text);
  };
}

/// All tokens as one, which is complete at the end only. Makes UTF-8 of what is not.
Take fuse(Take next) {
  return [next = std::move(next), all = std::string()](std::optional<std::string> token,
                                                       std::string& text) mutable {
    if (token) {
      all += *token;
      return;
    }
    std::string fused;
    for (std::string_view rest = all; !rest.empty();) {
      const std::size_t valid = valid_utf8_prefix(rest);
      fused += rest.substr(0, valid);
      rest.remove_prefix(valid);
      const std::size_t invalid = invalid_utf8_prefix(rest);
      fused += invalid > 0 ? replacement_character : "";
      rest.remove_prefix(invalid);
    }
    next(std::move(fused), text);
    next(std::nullopt, text);
  };
}

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

Take make_step(const DecodeStep& step, bool one_text, std::string_view source, Take next) {
  switch (step.kind) {
    case DecodeStep::Kind::byte_level:
      return byte_level(std::move(next));
    case DecodeStep::Kind::byte_fallback:
      return byte_fallback(std::move(next));
    case DecodeStep::Kind::fuse:
      return fuse(std::move(next));
    case DecodeStep::Kind::replace:
      return replace(step, source, std::move(next));
    case DecodeStep::Kind::strip:
      return strip(step, one_text, std::move(next));
    case DecodeStep::Kind::metaspace:
      break;
  }
  return metaspace(step, std::move(next));
}

}  // namespace

TakeToken token_decoder(const BpeDescription& description) {
  Take first = [](const std::optional<std::string>& token, std::string& text) {
    text += token.value_or("");
  };
  if (!description.decoding) {
    return spaced(std::move(first));
  }
  const std::vector<DecodeStep> all = prepared(*description.decoding);
  for (std::size_t i = all.size(); i-- > 0;) {
    const bool is_last = i + 1 == all.size();
    const bool after_fuse = i > 0 && all[i - 1].kind == DecodeStep::Kind::fuse;
    const bool one_text =
        is_last && after_fuse && all[i].kind == DecodeStep::Kind::strip && all[i].stop == 0;
    first = make_step(all[i], one_text, description.file.string(), std::move(first));
    i -= one_text ? 1 : 0;  // the text need not be complete
  }
  return first;
}

}  // namespace fourfold::data::detail
