// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/train/token_settings.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fourfold::train {

/// What a run's training data are, kept in its checkpoints, so that a later start can tell whether
/// they still are.
struct DataFacts {
  std::vector<std::string> files;  ///< not kept: for messages
  std::string token_counts;        ///< of each file in order, "1000,250"
  /// token_digests() of the files in order
  std::string digests;
  /// token_times() of the files in order
  std::string times;
  /// Of each tokenizer that made them, by the records: "IDENTITY VOCABULARY NAME", a line each; "-"
  /// for an identity that is not known
  std::string tokenizers;
};

/// Of the files as they are now. Collective: rank 0 reads, the others learn.
DataFacts data_facts(const data::TokenDataset& dataset, comm::Communicator& world);

/// Whether two checkpoints note the same training data, by count and digest of each file; not where
/// one notes none, as older versions. Local; reads no data.
bool have_same_data(const io::Checkpoint& one, const io::Checkpoint& other);

/// What a validation loss is of: the same word for the same tokens, and as many samples of them.
/// Collective: rank 0 reads, the others learn.
std::string validation_data(const data::TokenDataset& dataset, std::int64_t samples,
                            comm::Communicator& world);

/// Where no record beside the files says any more which tokenizer made them, and they are those of
/// the checkpoint as far as counts and digests tell, what that knows still holds. Local.
void take_over_tokenizers(const io::Checkpoint& before, DataFacts& now);

/// How data differ from those of a checkpoint, in words; nothing when they are the same as far as
/// the checkpoint tells (older versions kept the counts alone). A file that was written to since
/// (copied, touched or edited) is read whole and compared with the digest that its record had then,
/// up to `most_whole_bytes` of all files; those that had no record, or are beyond that, are named
/// in a warning. Collective: rank 0 reads, the others learn.
std::optional<std::string> data_change(const io::Checkpoint& before, const DataFacts& now,
                                       comm::Communicator& world,
                                       std::uint64_t most_whole_bytes = std::uint64_t{16} << 30);

/// Refuses to feed a model tokens of another tokenizer than it was trained on, as far as the
/// checkpoint and the records beside the files tell. Local.
/// @param allowed  warns instead
/// @throws UserError (config) naming both
void refuse_foreign_tokens(const io::Checkpoint& checkpoint, const data::TokenDataset& dataset,
                           bool allowed);

/// The same of a run that begins with the weights of a checkpoint, for its data. Local.
/// @param allowed  warns instead
/// @throws UserError (config) naming both
void refuse_foreign_data(const io::Checkpoint& checkpoint, const DataFacts& data, bool allowed);

/// Refuses to turn a model's tokens into text, or text into its tokens, with another tokenizer than
/// that of the data it was trained on, as far as the checkpoint tells. Local.
/// @param allowed  warns instead
/// @throws UserError (config) naming both
void refuse_foreign_tokenizer(const io::Checkpoint& checkpoint, const data::Tokenizer& tokenizer,
                              bool allowed);

/// The tokenizers of the data that a checkpoint's run was trained on, or of the model that was
/// imported; none when it does not tell.
std::vector<TokenMaker> saved_token_makers(const io::Checkpoint& checkpoint);

/// What a checkpoint keeps of tokenizers (runfile::tokenizers_name), as in DataFacts.
std::string token_makers_text(std::span<const TokenMaker> makers);

}  // namespace fourfold::train
