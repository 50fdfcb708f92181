// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The names under which a checkpoint keeps what a run is, besides tensors.
#pragma once

namespace fourfold::runfile {

/// The run file as it was used: to_toml().
inline constexpr const char* config_text_name = "config.toml";
/// The tokens of each training file in order ("1000,250").
inline constexpr const char* token_counts_name = "train_tokens";
/// A digest of each training file, and the tokenizers that made them (train::DataFacts).
inline constexpr const char* token_digests_name = "train_digests";
inline constexpr const char* tokenizers_name = "train_tokenizers";
/// When each training file was last written to, in nanoseconds since 1970.
inline constexpr const char* token_times_name = "train_times";
inline constexpr const char* consumed_samples_name = "consumed_samples";
inline constexpr const char* consumed_tokens_name = "consumed_tokens";
/// data.tokenizer of a checkpoint whose model was imported without its tokenizer: nobody knows, and
/// who needs one asks for it.
inline constexpr const char* unknown_tokenizer_name = "none";

}  // namespace fourfold::runfile
