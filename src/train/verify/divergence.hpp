// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a run says when its numbers are lost, and where to go on from.
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/train/evaluator.hpp>
#include <fourfold/train/step_runner.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace fourfold::train {

/// Exit code 65 and what to do when a step gave a loss or gradients that are not finite; nothing
/// when all is well, or the step was skipped and its loss scale lowered.
/// @param step  the number of steps made, this one among them
/// @param last_checkpoint  empty when there is none
std::optional<UserError> divergence(const StepOutcome& outcome, const runfile::TrainConfig& config,
                                    std::int64_t step,
                                    const std::filesystem::path& last_checkpoint);

/// The same when an evaluation gave a loss that is not finite.
std::optional<UserError> divergence(const Evaluation& evaluation, std::int64_t step,
                                    const std::filesystem::path& last_checkpoint);

/// The same when the last update has made weights that are not finite.
UserError lost_weights(std::int64_t step, const std::filesystem::path& last_checkpoint);

}  // namespace fourfold::train
