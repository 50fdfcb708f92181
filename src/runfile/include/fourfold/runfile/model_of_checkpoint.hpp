// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Runs that begin with a checkpoint: its model, where the run file has none, and what of a model
/// may differ from it.
#pragma once

#include <fourfold/runfile/run_config.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::runfile {

/// The model of the checkpoint that checkpoint.resume names, or with "auto" of the run's own newest
/// one. Asked with checkpoint.dir resolved, unless that is "never" or the run file writes [model]
/// with its vocabulary, or a preset: without [model] the model is the checkpoint's, with one that
/// leaves model.vocab out the vocabulary is. Values that --set gives lie over it.
/// @return nothing: the run has no checkpoint yet
using ModelOfCheckpoint =
    std::function<std::optional<model::Architecture>(const CheckpointConfig& checkpoint)>;

/// load_run_config() and parse_run_config() of programs that can open checkpoints.
/// @throws UserError as those; what model_of throws
EffectiveConfig load_run_config(const std::filesystem::path& file,
                                std::span<const std::string> overrides,
                                const ModelOfCheckpoint& model_of);
EffectiveConfig parse_run_config(std::string_view toml, const std::string& file_name,
                                 std::span<const std::string> overrides,
                                 const ModelOfCheckpoint& model_of);

/// Refuses to begin a run with the weights of a checkpoint whose model computes something else: the
/// keys of [model] that change what the weights compute are compared. A key may differ if it is
/// allowed by name (--allow-change=model.rope_theta) and the tensors are the same.
/// @param checkpoint  its path, for the message
/// @return the changes that were allowed, and those of model.dropout and of a llama's
///   model.context, which change nothing that is computed
/// @throws UserError (exit code config) naming each key with both values; also when `allowed` names
///   an unknown key
/// @pre both models are resolved
std::vector<ConfigChange> refuse_other_model(const model::Architecture& before,
                                             const model::Architecture& after,
                                             std::span<const std::string> allowed,
                                             const std::string& checkpoint);

// The names under which a checkpoint keeps what a run is, besides tensors.

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
