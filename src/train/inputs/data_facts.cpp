// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/fingerprint.hpp>
#include <fourfold/io/mapped_file.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/train/data_facts.hpp>
#include <fourfold/train/same_tokens.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string_view>

namespace fourfold::train {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

std::string line_of(const TokenMaker& maker) {
  return fmt::format("{} {} {}\n", maker.identity.empty() ? "-" : maker.identity, maker.vocab,
                     maker.tokenizer.substr(0, maker.tokenizer.find('\n')));
}

DataFacts facts_here(const data::TokenDataset& dataset) {
  DataFacts facts;
  std::vector<std::string> tokenizers;
  std::vector<TokenMaker> makers;
  for (const io::TokenFile& file : dataset.files()) {
    const auto record = data::token_record_of(file);
    if (!record) {
      continue;
    }
    const TokenMaker told{.file = {},
                          .tokenizer = record->tokenizer,
                          .identity = record->tokenizer_identity,
                          .vocab = record->vocab_size};
    if (std::ranges::count(makers, told) > 0) {
      continue;
    }
    makers.push_back(told);
    const std::string line = line_of(token_maker(file.path(), *record));
    if (std::ranges::count(tokenizers, line) == 0) {
      tokenizers.push_back(line);
    }
  }
  facts.digests = fmt::format("{}", fmt::join(token_digests(dataset), ","));
  facts.tokenizers = fmt::format("{}", fmt::join(tokenizers, ""));
  facts.times = fmt::format("{}", fmt::join(token_times(dataset), ","));
  return facts;
}

std::optional<std::string> changed_digest(const std::string& before, const DataFacts& now) {
  const std::vector<std::string> then = split(before, ',');
  const std::vector<std::string> digests = split(now.digests, ',');
  for (std::size_t i = 0; i < std::min(then.size(), digests.size()); ++i) {
    if (!can_be_same_tokens(then[i], digests[i])) {
      return format_message("{} has as many tokens as then, but others", now.files[i]);
    }
  }
  return std::nullopt;
}

std::string text_or_empty(const io::Checkpoint& checkpoint, const char* name) {
  const auto& texts = checkpoint.scalars().texts;
  const auto found = texts.find(name);
  return found == texts.end() ? std::string() : found->second;
}

/// "a, b, c and 12 more"
std::string shortened(std::vector<std::string> names) {
  constexpr std::size_t shown = 3;
  const std::size_t count = names.size();
  names.resize(std::min(count, shown));
  return fmt::format("{}{}", fmt::join(names, ", "),
                     count > shown ? fmt::format(" and {} more", count - shown) : "");
}

std::string digest_of_all(const std::string& file) {
  const io::MappedFile mapped(file);
  mapped.advise(io::MappedFile::Access::sequential);
  io::Fingerprint bytes;
  bytes.add(mapped.bytes());
  return bytes.str();
}

/// Of files that were written to since the checkpoint, which may have been edited anywhere. One
/// that was copied, or touched, has another time and the same tokens.
std::optional<std::string> change_in_whole(const io::Checkpoint& before, const DataFacts& now,
                                           std::uint64_t most_bytes) {
  const auto times_then = split(text_or_empty(before, runfile::token_times_name), ',');
  const auto times = split(now.times, ',');
  const auto digests = split(text_or_empty(before, runfile::token_digests_name), ',');
  std::vector<std::string> passed_over;
  std::uint64_t read_bytes = 0;
  for (std::size_t i = 0; i < std::min({times_then.size(), times.size(), digests.size()}); ++i) {
    if (times[i] == times_then[i]) {
      continue;
    }
    const std::string digest = digests[i].substr(digests[i].find(':') + 1);
    const std::uint64_t bytes = std::filesystem::file_size(now.files[i]);
    if (digest == "-" || read_bytes + bytes > most_bytes) {
      passed_over.push_back(now.files[i]);
      continue;
    }
    read_bytes += bytes;
    if (digest_of_all(now.files[i]).substr(0, digest.size()) != digest) {
      return fmt::format("{} has as many tokens as then, but others", now.files[i]);
    }
  }
  if (read_bytes > 0) {
    log::info(
        format_message("training files that were written to since the checkpoint: {} MB read, and "
                       "what is in them is what was prepared",
                       (read_bytes + 999'999) / 1'000'000));
  }
  if (!passed_over.empty()) {
    log::warning(format_message(
        "{}: written to since the checkpoint, and compared with what was trained on at {} places "
        "alone (no record tells a digest of all tokens, or more than {} GB would have to be read); "
        "go on if they were copied or touched, not if their tokens were edited",
        shortened(passed_over), most_token_windows, most_bytes / 1'000'000'000));
  }
  return std::nullopt;
}

std::vector<TokenMaker> makers_in(const std::string& text, const std::string& where) {
  std::vector<TokenMaker> makers;
  for (const std::string& line : split(text, '\n')) {
    std::istringstream words(line);
    TokenMaker maker{.file = where, .tokenizer = {}, .identity = {}, .vocab = 0};
    words >> maker.identity >> maker.vocab;
    words.ignore(1);
    std::getline(words, maker.tokenizer);
    maker.identity = maker.identity == "-" ? "" : maker.identity;
    makers.push_back(maker);
  }
  return makers;
}

bool is_one_of(const TokenMaker& maker, const std::vector<TokenMaker>& makers) {
  return std::ranges::any_of(makers,
                             [&](const TokenMaker& other) { return !are_different(maker, other); });
}

/// Refuses what is not the tokenizer of a checkpoint's data, or warns of it.
/// @param why, remedy, leave  as in "WHAT (WHY); REMEDY, or LEAVE"
void object(const std::string& what, bool allowed, const char* why, const char* remedy,
            const char* leave = "say --allow-mixed-tokenizers") {
  if (allowed) {
    log::warning(what);
    return;
  }
  throw UserError(ExitCode::config, format_message("{} ({}); {}, or {}", what, why, remedy, leave));
}

/// Of two tokenizers under one name, which would read as if nothing were wrong.
std::string change_between(const TokenMaker& trained_on, const TokenMaker& maker) {
  constexpr std::size_t shown = 8;
  if (maker.tokenizer != trained_on.tokenizer || maker.identity.empty() ||
      trained_on.identity.empty()) {
    return "";
  }
  return format_message(
      ": the file has changed in between, digest {} for the tokens, {} for the model",
      maker.identity.substr(0, shown), trained_on.identity.substr(0, shown));
}

}  // namespace

DataFacts data_facts(const data::TokenDataset& dataset, comm::Communicator& world) {
  DataFacts facts;
  comm::run_on_root(world, [&] { facts = facts_here(dataset); });
  facts.digests = comm::broadcast_text(world, facts.digests, 0);
  facts.times = comm::broadcast_text(world, facts.times, 0);
  facts.tokenizers = comm::broadcast_text(world, facts.tokenizers, 0);
  std::vector<std::int64_t> counts;
  for (const io::TokenFile& file : dataset.files()) {
    counts.push_back(file.tokens());
    facts.files.push_back(file.path().string());
  }
  facts.token_counts = fmt::format("{}", fmt::join(counts, ","));
  return facts;
}

bool have_same_data(const io::Checkpoint& one, const io::Checkpoint& other) {
  return std::ranges::all_of(std::array{runfile::token_counts_name, runfile::token_digests_name},
                             [&](const char* name) {
                               const std::string noted = text_or_empty(one, name);
                               return !noted.empty() && noted == text_or_empty(other, name);
                             });
}

void take_over_tokenizers(const io::Checkpoint& before, DataFacts& now) {
  const std::string digests = text_or_empty(before, runfile::token_digests_name);
  if (now.tokenizers.empty() && !digests.empty() && !changed_digest(digests, now) &&
      text_or_empty(before, runfile::token_counts_name) == now.token_counts) {
    now.tokenizers = text_or_empty(before, runfile::tokenizers_name);
  }
}

std::string validation_data(const data::TokenDataset& dataset, std::int64_t samples,
                            comm::Communicator& world) {
  std::string word;
  comm::run_on_root(world, [&] {
    io::Fingerprint data;
    for (const std::string& digest : token_digests(dataset)) {
      data.add(std::as_bytes(std::span(digest)));
    }
    word = fmt::format("{}:{}", data.str().substr(0, 16), samples);
  });
  return comm::broadcast_text(world, word, 0);
}

std::optional<std::string> data_change(const io::Checkpoint& before, const DataFacts& now,
                                       comm::Communicator& world, std::uint64_t most_whole_bytes) {
  const std::string counts = text_or_empty(before, runfile::token_counts_name);
  if (!counts.empty() && counts != now.token_counts) {
    return format_message("tokens of the training files {} -> {}", counts, now.token_counts);
  }
  const auto makers = makers_in(now.tokenizers, "");
  for (const TokenMaker& then : saved_token_makers(before)) {
    for (const TokenMaker& maker : makers) {
      if (makers.size() == 1 && are_different(then, maker)) {
        return format_message("tokenizer of the training files {} -> {}", then.tokenizer,
                              maker.tokenizer);
      }
    }
  }
  if (auto change = changed_digest(text_or_empty(before, runfile::token_digests_name), now)) {
    return change;
  }
  std::string change;
  comm::run_on_root(world,
                    [&] { change = change_in_whole(before, now, most_whole_bytes).value_or(""); });
  change = comm::broadcast_text(world, change, 0);
  return change.empty() ? std::nullopt : std::optional(change);
}

std::vector<TokenMaker> saved_token_makers(const io::Checkpoint& checkpoint) {
  return makers_in(text_or_empty(checkpoint, runfile::tokenizers_name), checkpoint.path().string());
}

std::string token_makers_text(std::span<const TokenMaker> makers) {
  std::string text;
  for (const TokenMaker& maker : makers) {
    text += line_of(maker);
  }
  return text;
}

void refuse_foreign_tokens(const io::Checkpoint& checkpoint, const data::TokenDataset& dataset,
                           bool allowed) {
  const std::vector<TokenMaker> trained_on = saved_token_makers(checkpoint);
  for (const io::TokenFile& file : dataset.files()) {
    const auto record = data::token_record_of(file);
    if (!record || trained_on.empty()) {
      log::info(format_message(
          "{}: whether the tokens are of the tokenizer that the model was trained with is not "
          "known ({})",
          file.path().string(),
          record ? "the checkpoint does not name it" : "no record says which one made them"));
      continue;
    }
    const TokenMaker maker = token_maker(file.path(), *record);
    if (is_one_of(maker, trained_on)) {
      continue;
    }
    object(
        fmt::format(
            "{} says that {} ({} tokens) made the tokens, and {} was trained on those of {} ({}){}",
            maker.file, maker.tokenizer, maker.vocab, checkpoint.path().string(),
            trained_on.front().tokenizer, trained_on.front().vocab,
            change_between(trained_on.front(), maker)),
        allowed, "the loss would say nothing", "prepare the text with that tokenizer");
    return;
  }
}

void refuse_foreign_data(const io::Checkpoint& checkpoint, const DataFacts& data, bool allowed) {
  const std::vector<TokenMaker> trained_on = saved_token_makers(checkpoint);
  for (const TokenMaker& maker : makers_in(data.tokenizers, "")) {
    if (trained_on.empty() || is_one_of(maker, trained_on)) {
      continue;
    }
    object(fmt::format("{} made the tokens of data.train ({} different ones), and {} was trained "
                       "on those of {} ({}){}",
                       maker.tokenizer, maker.vocab, checkpoint.path().string(),
                       trained_on.front().tokenizer, trained_on.front().vocab,
                       change_between(trained_on.front(), maker)),
           allowed, "each token would begin with the weights of another",
           "prepare the text with that tokenizer", "set data.allow_mixed_tokenizers = true");
    return;
  }
}

void refuse_foreign_tokenizer(const io::Checkpoint& checkpoint, const data::Tokenizer& tokenizer,
                              bool allowed) {
  const std::vector<TokenMaker> trained_on = saved_token_makers(checkpoint);
  const TokenMaker maker{.file = {},
                         .tokenizer = tokenizer.files().name(),
                         .identity = tokenizer.identity(),
                         .vocab = tokenizer.vocab_size()};
  if (trained_on.empty() || is_one_of(maker, trained_on)) {
    return;
  }
  object(fmt::format("the tokenizer {} ({} tokens), as it is now, is not the one of the data that "
                     "{} was trained on: {} ({} tokens), as it was then",
                     maker.tokenizer, maker.vocab, checkpoint.path().string(),
                     trained_on.front().tokenizer, trained_on.front().vocab),
         allowed, "the same number would mean different texts",
         "name a copy of that one with --tokenizer");
}

}  // namespace fourfold::train
