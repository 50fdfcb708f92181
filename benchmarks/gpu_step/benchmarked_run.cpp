// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "benchmarked_run.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/train/rank_plan.hpp>
#include <fourfold/train/resolved_run.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

namespace fourfold::benchmarks {
namespace {

/// A model, and the sequences and tokens of its micro-batch.
struct BenchmarkedModel {
  std::string_view name;
  std::string_view keys;  ///< of [model]
  std::int64_t tokens;
  std::int64_t micro_batch;
  std::int64_t global_batch;
};

// Vocabularies are multiples of 64, as PyTorch's users pad them.
constexpr std::array models{
    BenchmarkedModel{"gpt2-124m", "preset = \"gpt2-124m\"\nvocab = 50304", 1024, 64, 64},
    BenchmarkedModel{"gpt2-350m", "preset = \"gpt2-350m\"\nvocab = 50304", 1024, 32, 64},
    BenchmarkedModel{"gpt2-1558m", "preset = \"gpt2-1558m\"\nvocab = 50304", 1024, 16, 64},
    BenchmarkedModel{"llama-8b-layers", "preset = \"llama-3-8b\"\nlayers = 8\nvocab = 32000", 4096,
                     2, 16},
    BenchmarkedModel{"tiny",
                     "family = \"llama\"\nlayers = 2\nhidden = 32\nheads = 4\nkv_heads = 2\n"
                     "ffn = 64\nvocab = 320\ntie_embeddings = false",
                     16, 4, 8}};

const BenchmarkedModel& model_named(std::string_view name) {
  const auto found = std::ranges::find(models, name, &BenchmarkedModel::name);
  if (found == models.end()) {
    throw UserError(ExitCode::usage,
                    fmt::format("there is no benchmark of a model \"{}\" (it has no batch) take "
                                "one that --help names",
                                name));
  }
  return *found;
}

std::string quoted_list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", word);
  }
  return text;
}

std::size_t planned_bytes(const runfile::RunConfig& config) {
  return train::plan_rank(train::resolve_run({.config = config}, 1), 0).device_bytes();
}

}  // namespace

const std::vector<std::string>& benchmarked_models() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    std::ranges::transform(models, std::back_inserter(all),
                           [](const BenchmarkedModel& one) { return std::string(one.name); });
    return all;
  }();
  return names;
}

runfile::RunConfig run_config(const RunChoice& choice) {
  const BenchmarkedModel& model = model_named(choice.model);
  const auto chosen = [](std::int64_t asked, std::int64_t usual) {
    return asked > 0 ? asked : usual;
  };
  const std::int64_t micro_batch = chosen(choice.micro_batch, model.micro_batch);
  const std::string text = fmt::format(
      "[model]\n{}\ncontext = {}\n[train]\nmicro_batch = {}\nglobal_batch = {}\nprecision = "
      "\"bf16\"\n[optim]\nclip_norm = 1.0\n[data]\ntrain = [{}]\n",
      model.keys, chosen(choice.tokens, model.tokens), micro_batch,
      chosen(choice.global_batch, std::max(micro_batch, model.global_batch)),
      quoted_list(choice.token_files));
  const runfile::EffectiveConfig effective =
      runfile::parse_run_config(text, "gpu_step", choice.overrides);
  runfile::validate_batch(effective.config, 1, effective.origins);
  return effective.config;
}

void fit_micro_batch(runfile::RunConfig& config, std::size_t bytes) {
  while (planned_bytes(config) > bytes) {
    std::int64_t& sequences = config.train.micro_batch;
    if (sequences == 1) {
      throw UserError(ExitCode::config,
                      fmt::format("one sequence needs {} MiB, of {} MiB that a step may take: take "
                                  "a smaller model or --tokens, or --set train.recompute=full",
                                  planned_bytes(config) >> 20, bytes >> 20));
    }
    do {
      --sequences;
    } while (config.train.global_batch % sequences != 0);
  }
}

}  // namespace fourfold::benchmarks
