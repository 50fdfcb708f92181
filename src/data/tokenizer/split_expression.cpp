// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/split_expression.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <pcre2.h>

#include <array>

namespace fourfold::data::detail {
namespace {

constexpr std::size_t first_stack_bytes = 32 << 10;
constexpr std::size_t largest_stack_bytes = 64 << 20;

std::string reason_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

struct SplitExpression::Compiled {
  std::shared_ptr<pcre2_code> code;
  std::shared_ptr<pcre2_match_data> match;
  std::shared_ptr<pcre2_match_context> context;
  std::shared_ptr<pcre2_jit_stack> stack;
  std::string pattern;
  std::string source;
  bool is_plain = false;  ///< text that is found as it is, and not empty
};

SplitExpression::SplitExpression(const Pattern& pattern, std::string_view source)
    : compiled_(std::make_shared<Compiled>()) {
  compiled_->pattern = pattern.text;
  compiled_->source = source;
  compiled_->is_plain = !pattern.is_expression && !pattern.text.empty();
  const std::string translated =
      pattern.is_expression ? to_pcre2(pattern.text, source) : pattern.text;
  const std::shared_ptr<pcre2_compile_context> context(pcre2_compile_context_create(nullptr),
                                                       pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  // PCRE2 looks for what begins with .* at the beginnings of lines alone, also for (?:.*?)++a,
  // which then finds less (10.42).
  const std::uint32_t options =
      PCRE2_UTF | (pattern.is_expression ? PCRE2_UCP | PCRE2_NO_DOTSTAR_ANCHOR : PCRE2_LITERAL);
  int error = 0;
  std::size_t offset = 0;
  compiled_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                      translated.size(), options, &error, &offset, context.get()),
                        pcre2_code_free);
  if (!compiled_->code) {
    throw UserError(
        ExitCode::config,
        format_message(
            "{}: the splitting expression '{}' cannot be compiled ({}); mend the tokenizer file",
            source, pattern.text, reason_of(error)));
  }
  // Where just-in-time compilation is not to be had, pcre2_match interprets: slower, same matches.
  pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE);
  compiled_->match.reset(pcre2_match_data_create_from_pattern(compiled_->code.get(), nullptr),
                         pcre2_match_data_free);
  compiled_->context.reset(pcre2_match_context_create(nullptr), pcre2_match_context_free);
  compiled_->stack.reset(pcre2_jit_stack_create(first_stack_bytes, largest_stack_bytes, nullptr),
                         pcre2_jit_stack_free);
  pcre2_jit_stack_assign(compiled_->context.get(), nullptr, compiled_->stack.get());
}

void SplitExpression::refuse_empty_matches(std::string_view user) const {
  std::uint32_t matches_nothing = 0;
  pcre2_pattern_info(compiled_->code.get(), PCRE2_INFO_MATCHEMPTY, &matches_nothing);
  if (matches_nothing != 0) {
    throw UserError(ExitCode::config,
                    format_message("{}: the expression '{}' of {} can match an empty text (not "
                                   "supported; docs/data.md lists what is); use another tokenizer",
                                   compiled_->source, compiled_->pattern, user));
  }
}

std::optional<SplitExpression::Match> SplitExpression::find(std::string_view text,
                                                            std::size_t from) {
  FOURFOLD_EXPECT(from <= text.size());
  if (compiled_->is_plain) {
    const std::size_t begin = text.find(compiled_->pattern, from);
    return begin == std::string_view::npos
               ? std::nullopt
               : std::optional(Match{begin, begin + compiled_->pattern.size()});
  }
  const int outcome =
      pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                  from, PCRE2_NO_UTF_CHECK, compiled_->match.get(), compiled_->context.get());
  if (outcome == PCRE2_ERROR_NOMATCH) {
    return std::nullopt;
  }
  if (outcome < 0) {
    throw UserError(
        ExitCode::config,
        format_message("{}: the splitting expression '{}' fails at byte {} of a text of {} bytes "
                       "({}); split the text into smaller documents, or use another tokenizer",
                       compiled_->source, compiled_->pattern, from, text.size(),
                       reason_of(outcome)));
  }
  const std::size_t* offsets = pcre2_get_ovector_pointer(compiled_->match.get());
  return Match{offsets[0], offsets[1]};
}

Piece SplitExpression::replace(Piece piece, std::string_view content, std::string& replaced) {
  std::size_t from_first = 0;
  std::size_t done = 0;
  bool has_matched = false;
  while (done < piece.text.size()) {
    const auto match = find(piece.text, done);
    if (!match) {
      break;
    }
    if (!has_matched) {
      replaced.clear();
      has_matched = true;
    }
    from_first += piece.part(done, match->begin - done).from_first;
    from_first += match->end <= piece.from_first ? content.size() : 0;
    replaced += piece.text.substr(done, match->begin - done);
    replaced += content;
    done = match->end;
  }
  if (!has_matched) {
    return piece;
  }
  replaced += piece.text.substr(done);
  return {replaced, from_first + piece.part(done).from_first};
}

}  // namespace fourfold::data::detail
