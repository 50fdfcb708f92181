// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "divergence.hpp"

#include <fourfold/base/message.hpp>

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace fourfold::train {
namespace {

std::string text_of(const std::filesystem::path& last_checkpoint) {
  return last_checkpoint.empty() ? "the start" : last_checkpoint.string();
}

}  // namespace

std::optional<UserError> divergence(const StepOutcome& outcome, const runfile::TrainConfig& config,
                                    std::int64_t step,
                                    const std::filesystem::path& last_checkpoint) {
  if (std::isfinite(outcome.loss) && outcome.status != StepStatus::lost) {
    return std::nullopt;
  }
  if (std::isfinite(outcome.loss) && config.precision == DType::f16) {
    const bool moves = config.loss_scale == 0;
    return UserError(
        ExitCode::data_corrupt,
        format_message(
            "gradients overflow f16 at step {} though the loss is "
            "multiplied by {} only ({}; nothing of this step is saved); {}, "
            "or train with train.precision = \"bf16\", and resume from {}",
            step, outcome.loss_scale,
            moves ? "train.loss_scale_min, the lowest allowed" : "train.loss_scale, which is fixed",
            moves ? "lower train.loss_scale_min if it is above 1, lower "
                    "optim.lr or lengthen optim.warmup_steps"
                  : "lower it, or set it to \"auto\"",
            text_of(last_checkpoint)));
  }
  return UserError(
      ExitCode::data_corrupt,
      format_message("loss {} and gradient norm {} at step {} (training has diverged, nothing of "
                     "it is saved); lower optim.lr or lengthen optim.warmup_steps and resume from "
                     "{}; if the weights were lost before it was saved, from the step before",
                     outcome.loss, outcome.grad_norm, step, text_of(last_checkpoint)));
}

std::optional<UserError> divergence(const Evaluation& evaluation, std::int64_t step,
                                    const std::filesystem::path& last_checkpoint) {
  if (std::isfinite(evaluation.loss)) {
    return std::nullopt;
  }
  return UserError(
      ExitCode::data_corrupt,
      format_message("validation loss {} after step {} (training has diverged, nothing since is "
                     "saved); lower optim.lr or lengthen optim.warmup_steps and resume from {}",
                     evaluation.loss, step, text_of(last_checkpoint)));
}

UserError lost_weights(std::int64_t step, const std::filesystem::path& last_checkpoint) {
  return {ExitCode::data_corrupt,
          fmt::format("weights are not finite after step {} (an update was too large, and nothing "
                      "of it is saved); lower the learning rate and resume from {}",
                      step, text_of(last_checkpoint))};
}

}  // namespace fourfold::train
