// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/tensor_source.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model_conversion/external_tensor.hpp>
#include <fourfold/model_conversion/hf_tokenizer.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace fourfold::model_conversion {

struct ExportOptions {
  DType dtype = DType::f32;                  ///< f32, bf16, f16
  std::int64_t shard_bytes = 5'000'000'000;  ///< no file is larger, unless one tensor is
  /// rows of zeros fill the vocabulary up to a multiple; 0: as the format has it, 1 for Hugging
  /// Face and 128 for llm.c
  std::int64_t vocab_multiple = 0;
};

/// A file of weights that is to be written.
struct ExternalFile {
  std::string name;                     ///< in the folder
  std::string head;                     ///< what stands before the tensors
  std::vector<ExternalTensor> tensors;  ///< in order
  std::int64_t bytes = 0;               ///< of all of it
};

/// Everything that an export writes.
struct ExportPlan {
  bool is_folder = true;
  DType dtype = DType::f32;
  std::vector<ExternalFile> files;      ///< one, unless is_folder
  std::vector<FileBytes> texts = {};    ///< config.json, the index, the tokenizer's
  std::vector<std::string> notes = {};  ///< what others make of it that this program does not
  std::int64_t bytes() const;
};

/// A folder that transformers' from_pretrained takes: config.json, model.safetensors, and an index
/// when there are several; with a tokenizer its files, and generation_config.json. Nothing is read.
/// @pre config is resolved  @throws UserError as hf_config_json
ExportPlan plan_hf_export(const model::Architecture& config, const ExportOptions& options,
                          const HfTokenizer& tokenizer = {});

/// A file that llm.c's programs load. @throws UserError (config) naming key and value for what
/// llm.c's GPT-2 cannot be, and dtype f16
ExportPlan plan_llmc_export(const model::Architecture& config, const ExportOptions& options);

/// The model of a checkpoint.
/// @throws UserError: data_corrupt when its masters are not those of its run file's model
model::Architecture model_of(const io::Checkpoint& checkpoint);

/// Writes it to `path`, which appears whole or not at all.
/// @param progress  told of bytes written
/// @throws UserError: cannot_write, also when there is something at `path`; what `source` throws;
///   config when a value overflows the type
void write_export(const ExportPlan& plan, io::TensorSource& source,
                  const std::filesystem::path& path, std::int64_t memory_bytes,
                  const std::function<void(std::int64_t done_bytes)>& progress);

}  // namespace fourfold::model_conversion
