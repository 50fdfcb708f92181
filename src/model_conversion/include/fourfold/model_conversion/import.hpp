// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/checkpoint_plan.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model_conversion/external_source.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace fourfold::model_conversion {

struct ImportOptions {
  std::int64_t vocab = 0;    ///< keep the first rows of the vocabulary only; 0: all
  std::int64_t context = 0;  ///< a shorter context, the first positions of it; 0: all
};

/// A model in another program's files, which have been opened and checked; weights are still to be
/// read.
struct ExternalModel {
  model::Architecture config;      ///< resolved
  std::vector<std::string> notes;  ///< what is in the files and not taken over, a line each
  std::unique_ptr<ExternalSource> source;
};

/// A folder with config.json and model.safetensors, or the files of model.safetensors.index.json.
/// @throws UserError as parse_hf_config, io::SafetensorsFolder and ExternalSource; config also for
///   tensors that the model does not have
ExternalModel open_hf(const std::filesystem::path& folder, const ImportOptions& options);

/// A GPT-2 of llm.c. @throws UserError as io::LlmcCheckpoint and open_hf
ExternalModel open_llmc(const std::filesystem::path& file, const ImportOptions& options);

/// What a checkpoint of the model holds: the f32 masters, all on one rank.
std::vector<io::TensorLayout> layouts_of(const model::Architecture& config);

/// What it holds besides: a run file with this model and else the defaults, and a run that has not
/// begun. @param tokenizer  data.tokenizer; empty: nobody
/// knows, and programs that need one ask for it
io::CheckpointScalars scalars_of(const model::Architecture& config, const std::string& tokenizer);

/// A run file with which training goes on from an imported model: every key with its value and what
/// it means, the model exact, the weights taken from its step, log.dir a folder beside that.
/// Complete but for data.train.
/// @param tokenizer  data.tokenizer; empty: left to the record beside the token files
/// @param step       the imported checkpoint, whole path
/// @param file       where the run file will be, for its own example
/// @pre model is resolved
/// @throws UserError (config) for names that no run file can hold, which are those that are not
///   UTF-8
std::string run_file_of(const model::Architecture& model, const std::string& tokenizer,
                        const std::filesystem::path& step, const std::filesystem::path& file);

}  // namespace fourfold::model_conversion
