// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How other programs name, turn, fuse and order the parameters of our models, as data. Whoever
/// writes or reads their files goes through these tables.
///
/// Rotary positions need no turning: Hugging Face's Llama pairs feature i of a head with i +
/// head_dim / 2, and so do we.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/io/llmc_checkpoint.hpp>
#include <fourfold/model/architecture.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::model_conversion {

/// One of our parameters, or its first rows, as it lies in a tensor of another program.
struct Part {
  std::string name;         ///< ours, as in model/parameter_table.hpp
  Box place;                ///< in the other tensor
  bool transposed = false;  ///< element (i, j) of the place is our (j, i)
};

/// A tensor of another program. What no part covers is padding: zeros when written, not looked at
/// when read.
struct ExternalTensor {
  std::string name;
  Shape shape;
  std::vector<Part> parts;
};

/// Hugging Face: of the class that hf_config_json() names. In the order of the model; without
/// lm_head.weight when it is tied.
/// GPT-2's linear layers (Conv1D) are [in, out], with query, key and value side by side.
/// @param vocab_rows, position_rows  of the tables that count tokens and, with gpt2, positions
/// @pre these are at least the model's vocab and context
std::vector<ExternalTensor> hf_tensors(const model::Architecture& config, std::int64_t vocab_rows,
                                       std::int64_t position_rows);

/// llm.c: as io::llmc_arrays(), in that order.
/// @pre config has the layers and the width of sizes, and at most its vocab and context
std::vector<ExternalTensor> llmc_tensors(const model::Architecture& config,
                                         const io::LlmcSizes& sizes);

}  // namespace fourfold::model_conversion
