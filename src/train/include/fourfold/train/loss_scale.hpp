// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/runfile/run_config.hpp>

#include <cstdint>
#include <string_view>

namespace fourfold::train {

/// What became of a step.
enum class StepStatus : std::uint8_t {
  applied,
  skipped,  ///< its gradients overflowed f16: nothing was changed but the loss scale
  lost,     ///< its gradients were not finite, and there is no lower scale to try
};
/// "applied", "skipped", "lost"
std::string_view name(StepStatus status) noexcept;

/// What a checkpoint keeps of a loss scale.
struct LossScaleState {
  std::int64_t scale = 1;          ///< of the next step: a power of two
  std::int64_t good_steps = 0;     ///< applied since the scale last moved; 0 while it is fixed
  std::int64_t skipped_steps = 0;  ///< of the whole run
  friend bool operator==(const LossScaleState&, const LossScaleState&) = default;
};

/// The course of the loss scale of f16 (Micikevicius et al. 2018): a step that overflows halves it,
/// train.loss_scale_window applied steps in a row double it, as GradScaler of PyTorch does with its
/// factors at 2 and 1/2. Fixed where train.loss_scale says so, and 1 in other precisions.
///
/// A pure function of what finish_step() was told, which is the same on all ranks: so is everything
/// here, with nothing sent.
class LossScale {
 public:
  explicit LossScale(const runfile::TrainConfig& config);

  /// Whether the precision wants one: f16.
  bool in_use() const noexcept { return in_use_; }

  /// Ends a step. @param finite  whether the global norm of its gradients was
  StepStatus finish_step(bool finite);

  /// What the next step's loss is to be multiplied by.
  double scale() const noexcept { return static_cast<double>(state_.scale); }
  const LossScaleState& state() const noexcept { return state_; }

  /// Goes on from a checkpoint. Whether the scale moves, and its bounds, are the run file's: one
  /// that the run file fixes, or that no longer is in use, takes over the skipped steps alone.
  void restore(const LossScaleState& state);

 private:
  bool in_use_;
  bool moves_;
  std::int64_t window_;
  std::int64_t lowest_;
  LossScaleState state_;
};

}  // namespace fourfold::train
