// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/io/token_file.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/train/token_settings.hpp>

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

namespace fourfold::train {
namespace {

using runfile::EffectiveConfig;
using runfile::Origin;

constexpr const char* vocab_key = "model.vocab";
constexpr const char* tokenizer_key = "data.tokenizer";
constexpr std::int64_t vocab_multiple = 64;

/// The makers of a run's token files, those of training first, and the files without a record.
struct Makers {
  std::vector<TokenMaker> known;  ///< each that differs from those before
  std::vector<std::string> without_record;
  std::string missing;  ///< why some files could not be looked at
};

void add(Makers& makers, const io::TokenFile& file) {
  const auto record = data::token_record_of(file);
  if (!record) {
    makers.without_record.push_back(file.path().string());
    return;
  }
  if (record->tokenizer_identity.empty() &&
      std::ranges::any_of(makers.known, [&](const TokenMaker& other) {
        return other.tokenizer == record->tokenizer && other.vocab == record->vocab_size;
      })) {
    return;  // not its files again for each record of an older version
  }
  const TokenMaker maker = token_maker(file.path(), *record);
  if (std::ranges::none_of(makers.known, [&](const TokenMaker& other) {
        return !are_different(maker, other) && maker.vocab == other.vocab;
      })) {
    makers.known.push_back(maker);
  }
}

bool is_there(const std::string& name) {
  std::error_code ignored;
  return std::filesystem::exists(name, ignored) || std::filesystem::exists(name + ".bin", ignored);
}

Makers makers_of(const runfile::DataConfig& config) {
  Makers makers;
  for (const auto* names : {&config.train, &config.validation}) {
    for (const std::string& name : *names) {
      std::vector<std::string> files;
      try {
        files = data::expand_patterns({&name, 1});
      } catch (const UserError& error) {
        makers.missing = error.what();
      }
      for (const std::string& file : files) {
        if (is_there(file)) {
          add(makers, io::TokenFile(file));
        } else {
          makers.missing = format_message("{}: there is no such file", file);
        }
      }
    }
  }
  return makers;
}

std::string told(const TokenMaker& maker) {
  return format_message("{} ({} tokens)", maker.tokenizer, maker.vocab);
}

/// Refuses, or warns of, what does not go together.
void object(EffectiveConfig& effective, const std::string& what, const std::string& remedy) {
  if (effective.config.data.allow_mixed_tokenizers) {
    effective.warnings.push_back(what + "; data.allow_mixed_tokenizers allows it");
    return;
  }
  throw UserError(
      ExitCode::config,
      runfile::located(format_message("{} (the same number would mean different texts); {}, or "
                                      "accept that with data.allow_mixed_tokenizers = true",
                                      what, remedy),
                       effective.origins));
}

void compare_files(EffectiveConfig& effective, const Makers& makers) {
  const TokenMaker& first = makers.known.front();
  const auto other = std::ranges::find_if(
      makers.known, [&](const TokenMaker& maker) { return are_different(first, maker); });
  if (other != makers.known.end()) {
    object(effective,
           format_message("data.train and data.validation name files of different tokenizers: {} "
                          "says {}, and {} says {}",
                          first.file, told(first), other->file, told(*other)),
           "name files of one tokenizer");
  }
}

Origin origin_of(const EffectiveConfig& effective, const char* key) {
  const auto origin = effective.origins.find(key);
  return origin == effective.origins.end() ? Origin{} : origin->second;
}

bool is_default(const EffectiveConfig& effective, const char* key) {
  return origin_of(effective, key).source == Origin::Source::default_value;
}

void resolve_vocab(EffectiveConfig& effective, const Makers& makers) {
  const auto largest = std::ranges::max_element(makers.known, {}, &TokenMaker::vocab);
  const std::int64_t rounded =
      (largest->vocab + vocab_multiple - 1) / vocab_multiple * vocab_multiple;
  std::int64_t& vocab = effective.config.model.vocab;
  if (is_default(effective, vocab_key)) {
    vocab = rounded;
    effective.origins[vocab_key] = {Origin::Source::derived,
                                    format_message("the {} tokens of {}, up to a multiple of {}",
                                                   largest->vocab, largest->file, vocab_multiple)};
  }
  const std::string place = origin_of(effective, vocab_key).str();
  if (vocab < largest->vocab) {
    throw UserError(
        ExitCode::config,
        runfile::located(
            format_message("model.vocab = {} ({}) is less than the {} tokens that {} says its "
                           "tokenizer has; {}",
                           vocab, place, largest->vocab, largest->file,
                           origin_of(effective, vocab_key).source == Origin::Source::derived
                               ? "name token files of the checkpoint's tokenizer"
                               : format_message("set it to {} or more, or leave it out", rounded)),
            effective.origins));
  }
  const bool is_padding =
      static_cast<double>(vocab) <= 1.05 * static_cast<double>(largest->vocab) || vocab <= rounded;
  if (!is_padding) {
    effective.warnings.push_back(format_message(
        "model.vocab = {} ({}), but the token files have only {} different tokens at most ({}): "
        "the rest of the embedding is never trained; set it to {}, or leave it out in a new run",
        vocab, place, largest->vocab, largest->file, rounded));
  }
}

void resolve_tokenizer(EffectiveConfig& effective, const Makers& makers) {
  std::string& tokenizer = effective.config.data.tokenizer;
  const TokenMaker& first = makers.known.front();
  if (is_default(effective, tokenizer_key)) {
    tokenizer = first.tokenizer;
    effective.origins[tokenizer_key] = {Origin::Source::derived, first.file};
  }
  TokenMaker written{
      .file = origin_of(effective, tokenizer_key).str(), .tokenizer = tokenizer, .identity = {}};
  try {
    written.identity = data::tokenizer_identity(tokenizer);
  } catch (const UserError&) {  // who needs it says that it cannot be opened
    return;
  }
  if (!first.identity.empty() && are_different(written, first)) {
    object(
        effective,
        format_message(
            "data.tokenizer = \"{}\" ({}) did not make the token files, as it is now: {} says {}",
            tokenizer, written.file, first.file, told(first)),
        "name the one that did, or leave the key out");
  }
}

void note_files_without_record(EffectiveConfig& effective, const Makers& makers) {
  if (!makers.without_record.empty()) {
    if (makers.known.empty() && is_default(effective, tokenizer_key)) {
      effective.config.data.tokenizer = runfile::unknown_tokenizer_name;
      effective.origins[tokenizer_key] = {Origin::Source::derived, "token files without a record"};
    }
    effective.notes.push_back(
        format_message("{}{}: no record says which tokenizer made {}; model.vocab = {} ({}) and "
                       "data.tokenizer = \"{}\" ({}) are used as they are",
                       makers.without_record.front(),
                       makers.without_record.size() > 1
                           ? format_message(" and {} more files", makers.without_record.size() - 1)
                           : "",
                       makers.without_record.size() > 1 ? "them" : "it",
                       effective.config.model.vocab, origin_of(effective, vocab_key).str(),
                       effective.config.data.tokenizer, origin_of(effective, tokenizer_key).str()));
  }
  if (!makers.missing.empty() && is_default(effective, vocab_key)) {
    effective.notes.push_back(format_message(
        "model.vocab = {} is the default, since the token files cannot be looked at ({})",
        effective.config.model.vocab, makers.missing));
  }
}

using FileIdentity = std::pair<dev_t, ino_t>;

/// A file, and the entry of a list that names it.
struct NamedFile {
  std::string path;
  std::string entry;
  bool by_pattern = false;
};
using NamedFiles = std::map<FileIdentity, NamedFile>;

/// Of the .bin, whichever file of the pair is named.
std::optional<std::pair<FileIdentity, std::string>> identity_of(const std::string& name) {
  std::vector<std::string> candidates{name, name + ".bin"};
  if (std::filesystem::path(name).extension() == ".idx") {
    candidates = {std::filesystem::path(name).replace_extension(".bin").string()};
  }
  for (const std::string& candidate : candidates) {
    struct stat found {};
    if (::stat(candidate.c_str(), &found) == 0 && S_ISREG(found.st_mode)) {
      return std::pair(FileIdentity(found.st_dev, found.st_ino), candidate);
    }
  }
  return std::nullopt;
}

/// The files of one list. Each that comes again is a warning.
NamedFiles files_of(const std::vector<std::string>& list, const char* key,
                    std::vector<std::string>& warnings) {
  NamedFiles files;
  for (const std::string& entry : list) {
    std::vector<std::string> names;
    try {
      names = data::expand_patterns({&entry, 1});
    } catch (const UserError&) {  // nothing matches: who opens them says so
      continue;
    }
    const bool by_pattern = names.size() != 1 || names.front() != entry;
    for (const std::string& name : names) {
      const auto found = identity_of(name);
      if (!found) {
        continue;
      }
      const auto [place, is_new] =
          files.try_emplace(found->first, NamedFile{found->second, entry, by_pattern});
      if (!is_new) {
        warnings.push_back(format_message(
            "{} is named twice in {}, by \"{}\" and by \"{}\": its samples come twice in an epoch",
            found->second, key, place->second.entry, entry));
      }
    }
  }
  return files;
}

/// Looks for token files that [data] names twice, by whatever name: device and inode tell. A
/// pattern of data.train that also catches a file of data.validation is refused, since nobody means
/// that: the loss of text that was trained on looks like that of new text. A file that is written
/// in both, or twice in one, is a warning of `effective`: to overfit on purpose, or to train on a
/// text more often, is done so. Files that are not there are passed over. Local.
/// @throws UserError (config) with the file, the pattern and both keys
void note_files_named_twice(runfile::EffectiveConfig& effective) {
  const runfile::DataConfig& data = effective.config.data;
  const NamedFiles training = files_of(data.train, "data.train", effective.warnings);
  const NamedFiles validation = files_of(data.validation, "data.validation", effective.warnings);
  for (const auto& [identity, held_back] : validation) {
    const auto found = training.find(identity);
    if (found == training.end()) {
      continue;
    }
    const NamedFile& trained = found->second;
    if (trained.by_pattern && trained.entry != held_back.entry) {
      throw UserError(
          ExitCode::config,
          runfile::located(
              format_message(
                  "data.train = \"{}\" catches {}, which data.validation names (the "
                  "validation loss would be of text that was trained on); write a pattern "
                  "that leaves it out, like \"*_train.bin\", or name the files one by one",
                  trained.entry, trained.path),
              effective.origins));
    }
    effective.warnings.push_back(
        format_message("{} is in data.train and in data.validation: the validation loss is of text "
                       "that was trained on, and tells nothing of other text",
                       trained.path));
  }
}

}  // namespace

bool names_token_files(const std::string& name) {
  try {
    return std::ranges::all_of(data::expand_patterns({&name, 1}), is_there);
  } catch (const UserError&) {  // a pattern that matches nothing
    return false;
  }
}

TokenMaker token_maker(const std::filesystem::path& bin, const data::TokenRecord& record) {
  TokenMaker maker{.file = data::token_record_path(bin).string(),
                   .tokenizer = record.tokenizer,
                   .identity = record.tokenizer_identity,
                   .vocab = record.vocab_size};
  if (maker.identity.empty()) {
    try {
      maker.identity = data::tokenizer_identity(record.tokenizer);
    } catch (const UserError&) {  // its files have been moved
      maker.identity.clear();
    }
  }
  return maker;
}

bool are_different(const TokenMaker& a, const TokenMaker& b) {
  if (!a.identity.empty() && !b.identity.empty()) {
    return a.identity != b.identity;
  }
  return a.tokenizer != b.tokenizer && a.vocab != b.vocab && a.vocab != 0 && b.vocab != 0;
}

EffectiveConfig with_token_settings(EffectiveConfig effective) {
  note_files_named_twice(effective);
  const Makers makers = makers_of(effective.config.data);
  if (!makers.known.empty()) {
    compare_files(effective, makers);
    resolve_vocab(effective, makers);
    resolve_tokenizer(effective, makers);
  }
  note_files_without_record(effective, makers);
  return effective;
}

}  // namespace fourfold::train
