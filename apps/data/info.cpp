// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/data/token_record.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/io/token_file.hpp>
#include <fourfold/program/print.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace fourfold::apps {
namespace {

/// Smallest and largest token, in one pass through the file.
void read_extremes(const io::TokenFile& file, FileFacts& facts) {
  file.advise(io::MappedFile::Access::sequential);
  facts.smallest_token = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int32_t> chunk(1 << 16);
  for (std::int64_t first = 0; first < file.tokens(); first += std::ssize(chunk)) {
    const std::size_t count = std::min<std::int64_t>(std::ssize(chunk), file.tokens() - first);
    const std::span<std::int32_t> tokens = std::span(chunk).first(count);
    file.read(first, tokens);
    const auto [smallest, largest] = std::ranges::minmax(tokens);
    facts.smallest_token = std::min(facts.smallest_token, smallest);
    facts.largest_token = std::max(facts.largest_token, largest);
  }
}

/// The text of tokens. @throws UserError when the record's tokenizer is another one by now
std::string text_of(const std::vector<std::int32_t>& tokens, const io::TokenFile& file,
                    const std::optional<data::TokenRecord>& record, const std::string& named) {
  const auto tokenizer = data::open_tokenizer(named.empty() ? record->tokenizer : named);
  if (record && !record->tokenizer_identity.empty() &&
      record->tokenizer_identity != tokenizer->identity()) {
    const std::string what = format_message(
        "the tokenizer {}, as it is now, is not the one that {} names: {}, as it was then",
        tokenizer->files().name(), data::token_record_path(file.path()).string(),
        record->tokenizer);
    if (named.empty()) {
      throw UserError(ExitCode::config,
                      format_message("{} (the tokens would read as another text); name a copy of "
                                     "that one with --tokenizer, or leave --show away",
                                     what));
    }
    log::warning(what);
  }
  return tokenizer->decode(tokens);
}

FileFacts facts_of(const std::string& path, const InfoRequest& request) {
  const io::TokenFile file(path);
  file.verify_index();
  const auto record = data::token_record_of(file);
  if (record) {
    data::verify_digests(file, *record);
  }
  FileFacts facts;
  facts.path = file.path().string();
  facts.format = io::name(file.format());
  facts.type = io::name(file.type());
  facts.tokens = file.tokens();
  facts.size_bytes = std::filesystem::file_size(file.path());
  facts.documents = file.documents();
  read_extremes(file, facts);
  if (record) {
    facts.tokenizer = record->tokenizer_description;
  }
  if (request.show > 0) {
    facts.first_tokens.resize(std::min(request.show, file.tokens()));
    file.read(0, facts.first_tokens);
    if (record || !request.tokenizer.empty()) {
      facts.first_text = text_of(facts.first_tokens, file, record, request.tokenizer);
    }
  }
  return facts;
}

void print(const FileFacts& facts) {
  program::print("{}\n", facts.path);
  program::print("  format     {}, {}, {:.1f} MB\n", facts.format, facts.type,
                 static_cast<double>(facts.size_bytes) / 1e6);
  program::print("  tokens     {}, from {} to {}\n", facts.tokens, facts.smallest_token,
                 facts.largest_token);
  program::print("  documents  {}\n",
                 facts.documents ? fmt::format("{}", *facts.documents) : "not recorded");
  program::print("  tokenizer  {}\n", facts.tokenizer.value_or("not recorded"));
  if (!facts.first_tokens.empty()) {
    program::print("  begins     {}\n", fmt::join(facts.first_tokens, " "));
  }
  if (facts.first_text) {
    program::print_text("  reads\n" + *facts.first_text + "\n");  // lines as they are
  }
}

}  // namespace

void info(const InfoRequest& request) {
  std::vector<FileFacts> files;
  for (const std::string& path : data::expand_patterns(request.files)) {
    files.push_back(facts_of(path, request));
    if (!request.json) {
      print(files.back());
    }
  }
  if (request.json) {
    program::print_text(to_json(files) + "\n");
  }
}

}  // namespace fourfold::apps
