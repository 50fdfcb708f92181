// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/runfile/run_config.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::benchmarks {

/// What is asked of gpu_step. 0: what the model has.
struct RunChoice {
  std::string model = "gpt2-124m";
  std::int64_t tokens = 0;        ///< of a sequence
  std::int64_t micro_batch = 0;   ///< sequences of a forward pass
  std::int64_t global_batch = 0;  ///< of a step
  std::vector<std::string> token_files;
  std::vector<std::string> overrides;  ///< "table.key=value", as --set of fourfold train
};

/// "gpt2-124m", "gpt2-350m", "gpt2-1558m", "llama-8b-layers" (8 layers of Llama 3 8B over 32,000
/// tokens) and "tiny", which tries the program itself.
const std::vector<std::string>& benchmarked_models();

/// The run file's configuration of a choice, in bf16 with AdamW and clipping: 65,536 tokens of a
/// step in the micro-batches of that model.
/// @throws UserError as runfile::parse_run_config
runfile::RunConfig run_config(const RunChoice& choice);

/// Takes for train.micro_batch the largest divisor of train.global_batch, not above what it was,
/// with which a rank by itself takes no more than `bytes`.
/// @throws UserError (config) when not even one sequence fits
void fit_micro_batch(runfile::RunConfig& config, std::size_t bytes);

}  // namespace fourfold::benchmarks
