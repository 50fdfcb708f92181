// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/data/prepare.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/progress.hpp>

#include <fmt/format.h>

namespace fourfold::apps {
namespace {

/// The characters that a separator typed with \n, \t, \r, \0 and \\ means.
std::string unescape(const std::string& typed) {
  std::string meant;
  for (std::size_t i = 0; i < typed.size(); ++i) {
    if (typed[i] != '\\' || i + 1 == typed.size()) {
      meant.push_back(typed[i]);
      continue;
    }
    switch (typed[++i]) {
      case 'n':
        meant.push_back('\n');
        break;
      case 't':
        meant.push_back('\t');
        break;
      case 'r':
        meant.push_back('\r');
        break;
      case '0':
        meant.push_back('\0');
        break;
      case '\\':
        meant.push_back('\\');
        break;
      default:
        throw UserError(
            ExitCode::usage,
            format_message("--document-separator '{}' holds '\\{}' (only \\n, \\t, \\r, \\0 "
                           "and \\\\ mean something); write \\\\ for a backslash",
                           typed, typed[i]));
    }
  }
  return meant;
}

}  // namespace

void prepare(const PrepareRequest& request) {
  io::refuse_place_in_step(request.output + ".bin");
  const auto tokenizer = data::open_tokenizer(request.tokenizer);
  data::PrepareOptions options;
  options.inputs.assign(request.inputs.begin(), request.inputs.end());
  options.output_prefix = request.output;
  options.format = request.format;
  options.append_end_of_text = request.append_end_of_text;
  options.validation_fraction = request.validation_fraction;
  if (!request.document_separator.empty()) {
    options.document_separator = unescape(request.document_separator);
  }
  program::Progress display(request.progress, "prepared");
  const auto show = [&](const data::PrepareProgress& progress) {
    display.show(progress.done_bytes, progress.total_bytes,
                 fmt::format("{:.1f} Mtoken", static_cast<double>(progress.tokens) / 1e6));
  };
  const auto parts = data::prepare(*tokenizer, options, show);
  display.finish();
  program::print("tokenizer: {}\n", tokenizer->description());
  for (const data::PreparedPart& part : parts) {
    if (request.check) {
      data::check_part(part, tokenizer->vocab_size());
    }
    program::print("{}: {} tokens in {} document{}{}\n", part.bin.string(), part.tokens,
                   part.documents, part.documents == 1 ? "" : "s",
                   request.check ? ", read again and found right" : "");
  }
}

}  // namespace fourfold::apps
