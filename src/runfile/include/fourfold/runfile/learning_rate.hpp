// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Learning rate as a closed form of the update number: nothing to save, any step can be asked for.
#pragma once

#include <fourfold/base/enum_name.hpp>

#include <cstdint>
#include <string>

namespace fourfold::runfile {

enum class ScheduleKind : std::uint8_t { warmup_cosine, linear, constant, wsd };
constexpr auto names_of(ScheduleKind /*any*/) {
  using enum ScheduleKind;
  return std::to_array<Named<ScheduleKind>>(
      {{warmup_cosine, "warmup_cosine"}, {linear, "linear"}, {constant, "constant"}, {wsd, "wsd"}});
}
using fourfold::name;

/// All kinds begin with the same linear warm-up. With w = warmup_steps, d = decay_steps,
/// c = cooldown_steps and the update number s counted from 0:
///
///     s < w          lr * (s + 1) / w: the update w - 1 already has the full rate
///     warmup_cosine  min_lr + (lr - min_lr) * (1 + cos(pi * p)) / 2,   p = (s - w) / (d - w)
///     linear         lr + (min_lr - lr) * p
///     constant       lr
///     wsd            lr until s = d - c, then linear in p = (s - (d - c)) / c
///                    (warm-up, stable, decay: Hu et al., MiniCPM, 2024)
///     s >= d         min_lr (all but constant)
///
/// A run of d updates ends with s = d - 1, so its last update does not have min_lr yet.
struct LearningRateSchedule {
  ScheduleKind kind = ScheduleKind::warmup_cosine;
  double lr = 6e-4;               ///< the peak
  double min_lr = 0;              ///< reached at update decay_steps and kept afterwards
  std::int64_t warmup_steps = 0;  ///< 0: no warm-up
  /// number of updates after which min_lr is reached; >= warmup_steps
  std::int64_t decay_steps = 0;
  /// wsd only: length of the final decay; <= decay_steps - warmup_steps
  std::int64_t cooldown_steps = 0;
  friend bool operator==(const LearningRateSchedule&, const LearningRateSchedule&) = default;
};

/// The rate of update `step`, counted from 0: the first update of a run is 0, a run of N steps ends
/// with N - 1.
/// @pre step >= 0
double learning_rate(const LearningRateSchedule& schedule, std::int64_t step);

/// What a schedule does to the updates that are left, for people who have changed how many there
/// are: "the learning rate was 1.5e-05 at update 4 and is 0.0005 at update 5; it reaches
/// optim.min_lr = 0 after update 8".
/// @param before  the schedule of the updates made
/// @param made    updates so far; at least 1
/// @param steps   all that the run will make; more than `made`
std::string rate_eta(const LearningRateSchedule& before, const LearningRateSchedule& now,
                     std::int64_t made, std::int64_t steps);
/// Whether all updates that are left have the rate 0 and change nothing.
/// @pre 0 <= made < steps
bool ends_at_rate_zero(const LearningRateSchedule& now, std::int64_t made, std::int64_t steps);

}  // namespace fourfold::runfile
