// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/data/token_record.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace fourfold::train {

/// What made the tokens of a file, as the record beside it says.
struct TokenMaker {
  std::string file;       ///< the record's path, or where else this is said; for messages
  std::string tokenizer;  ///< "byte" or a path
  std::string identity;   ///< data::Tokenizer::identity(); empty: not known
  std::int64_t vocab = 0;
  friend bool operator==(const TokenMaker&, const TokenMaker&) = default;
};

/// As the record says; the identity of an older one is looked for in the tokenizer's files.
TokenMaker token_maker(const std::filesystem::path& bin, const data::TokenRecord& record);

/// Whether both are known to be different tokenizers. Without an identity, names and sizes of
/// vocabularies tell.
bool are_different(const TokenMaker& a, const TokenMaker& b);

/// Sets model.vocab and data.tokenizer where the run file does not, and compares what it writes
/// with what the records beside the files of data.train and data.validation say:
///
/// - model.vocab: the value written, else the preset's or the checkpoint's, else the largest of the
///   records', rounded up to a multiple of 64, else the default. Less than the records' is refused,
///   and more than 5 % above it, and above that multiple, is warned of.
/// - data.tokenizer: the one written, else the records', else the default. One that is not the
///   records' is refused, and so are records of different tokenizers, unless
///   data.allow_mixed_tokenizers.
///
/// Files that are not there yet are passed over: a plan does without. Origins, notes and warnings
/// say what was done. Local; the same files give the same everywhere.
/// @throws UserError: config as above; what opening a token file throws
runfile::EffectiveConfig with_token_settings(runfile::EffectiveConfig effective);

/// Whether a name or pattern of data.train is that of token files which are there. Local.
bool names_token_files(const std::string& name);

}  // namespace fourfold::train
