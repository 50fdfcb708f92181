// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

#include <string>

namespace fourfold::runfile {
namespace {

using enum OnResume;

RunField member(auto path) {
  return field(&RunConfig::train, path);
}

RunField precision_field() {
  return text_field(
      names_in(stored_dtypes), [](const RunConfig& config) { return name(config.train.precision); },
      [](RunConfig& config, const std::string& text) {
        config.train.precision = *dtype_from_name(text);
      });
}

RunField recompute_field() {
  RunField result = text_field(
      names_in(model::named_recomputes),
      [](const RunConfig& config) { return model::name(config.train.recompute); },
      [](RunConfig& config, const std::string& text) {
        config.train.recompute = *model::recompute_named(text);
      });
  result.form = "every:K";
  result.form_condition = "with K of at least 1";
  result.has_form = [](const std::string& text) {
    return model::recompute_named(text).has_value();
  };
  return result;
}

RunField matmul_tuning_field() {
  RunField result = text_field(
      {"none"},
      [](const RunConfig& config) {
        const std::string& path = config.train.matmul_tuning_file;
        return path.empty() ? "none" : path;
      },
      [](RunConfig& config, const std::string& text) {
        config.train.matmul_tuning_file = text == "none" ? "" : text;
      });
  result.form = "PATH";
  result.form_condition = "of a file";
  result.has_form = [](const std::string& text) { return !text.empty(); };
  return result;
}

}  // namespace

std::vector<RunKey> train_keys() {
  const Relevance f16{"train.precision = \"f16\"",
                      [](const RunConfig& config) { return config.train.precision == DType::f16; }};
  const Relevance moving{
      "train.precision = \"f16\" and train.loss_scale = \"auto\"", [](const RunConfig& config) {
        return config.train.precision == DType::f16 && config.train.loss_scale == 0;
      }};
  const Relevance with_validation{
      "data.validation", [](const RunConfig& config) { return !config.data.validation.empty(); }};
  return {
      {.name = "global_batch",
       .field = member(&TrainConfig::global_batch),
       .unit = "sequences",
       .meaning = "Sequences of one update, all ranks together.",
       .minimum = 1,
       .maximum = 1048576,
       .on_resume = needs_allowance},
      {.name = "micro_batch",
       .field = member(&TrainConfig::micro_batch),
       .unit = "sequences",
       .meaning = "Sequences that one rank takes through the model at a time; gradients accumulate "
                  "until the rank's share of the global batch is done.",
       .minimum = 1,
       .maximum = 1e9},
      {.name = "steps",
       .field = member(&TrainConfig::steps),
       .unit = "updates",
       .meaning = "Updates after which the run is finished, counted over all restarts.",
       .minimum = 0},
      {.name = "seed",
       .field = member(&TrainConfig::seed),
       .meaning = "Seed of initial weights, dropout and the order of samples.",
       .minimum = 0,
       .on_resume = needs_allowance},
      {.name = "precision",
       .field = precision_field(),
       .meaning = "Storage of weights and activations. Sums, gradients, master weights and moments "
                  "are f32 in any case. f16 scales the loss (docs/precision.md).",
       .on_resume = needs_allowance},
      {.name = "loss_scale",
       .field = member(&TrainConfig::loss_scale),
       .meaning = "What the loss is multiplied by for the backward pass, a power of two, so that "
                  "small gradients do not vanish in f16. auto: a step whose gradients overflow "
                  "halves it and changes nothing else, loss_scale_window others double it. A "
                  "number stays what it is, and an overflow ends the run.",
       .minimum = 1,
       .maximum = largest_loss_scale,
       .automatic = "moves with overflows",
       .relevance = f16},
      {.name = "loss_scale_initial",
       .field = member(&TrainConfig::loss_scale_initial),
       .meaning = "Loss scale of the first step.",
       .minimum = 1,
       .maximum = largest_loss_scale,
       .relevance = moving},
      {.name = "loss_scale_window",
       .field = member(&TrainConfig::loss_scale_window),
       .unit = "updates",
       .meaning = "Updates without an overflow after which the loss scale doubles.",
       .minimum = 1,
       .relevance = moving},
      {.name = "loss_scale_min",
       .field = member(&TrainConfig::loss_scale_min),
       .meaning = "The loss scale falls no further: an overflow with this one ends the run.",
       .minimum = 1,
       .maximum = largest_loss_scale,
       .relevance = moving},
      {.name = "recompute",
       .field = recompute_field(),
       .meaning = "Which activations are made again in the backward pass rather than kept, to the "
                  "same bits (but for selective on GPUs, docs/activations.md): none; full: a block "
                  "keeps only its input, and its forward pass runs again; every:K: so do groups of "
                  "K blocks; selective: only norms, attention and activations run again, no "
                  "products. docs/activations.md has the bytes."},
      {.name = "head_chunks",
       .field = member(&TrainConfig::head_chunks),
       .meaning = "Chunks of a micro-batch's tokens in which the head's logits and the loss are "
                  "made, one after the other, so that 1/head_chunks of the logits are in memory, "
                  "once for all micro-batches in flight. docs/memory.md has bytes and times.",
       .minimum = 1},
      {.name = "matmul_tuning_file",
       .field = matmul_tuning_field(),
       .path_after = "",
       .meaning = "On GPUs: a file of the fastest way of each matrix product. Those it does not "
                  "have are measured when they first come, and added at the end of the run. none: "
                  "products are made the way that the library puts first. docs/gpu.md."},
      {.name = "deterministic_attention",
       .field = member(&TrainConfig::deterministic_attention),
       .meaning = "Attention's backward pass on GPUs gives the same bits every time; cuDNN then "
                  "takes up to two bytes for each pair of tokens and each head of a micro-batch. "
                  "false is faster and takes less. docs/gpu.md has the bytes."},
      {.name = "cuda_graphs",
       .field = named_field(&RunConfig::train, &TrainConfig::cuda_graphs),
       .meaning =
           "On GPUs: the passes of micro-batches are recorded once and launched as a whole, to the "
           "same bits, which saves the time of launches where micro-batches are small. auto: up to "
           "4096 tokens of a rank. They need mesh.tp, cp and pp of 1, no dropout, weights that "
           "need no gathering and gradients summed once per step (docs/gpu.md)."},
      {.name = "eval_every_steps",
       .field = member(&TrainConfig::eval_every_steps),
       .unit = "updates",
       .meaning =
           "Updates between evaluations on the validation data; 0: only after the last step.",
       .minimum = 0,
       .relevance = with_validation},
      {.name = "eval_batches",
       .field = member(&TrainConfig::eval_batches),
       .unit = "global batches",
       .meaning = "Length of one evaluation; 0: all of the validation data.",
       .minimum = 0,
       .relevance = with_validation},
  };
}

}  // namespace fourfold::runfile
