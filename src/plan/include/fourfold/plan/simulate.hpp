// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/timeline.hpp>

#include <optional>
#include <vector>

namespace fourfold::plan {

/// What the passes of one micro-batch cost.
struct PassCosts {
  double forward_s = 1;
  double backward_input_s = 1;
  double backward_weight_s = 1;
  std::optional<double> backward_s = {};  ///< in one piece; default: both halves
  double sum_s() const noexcept { return forward_s + backward_input_s + backward_weight_s; }
};

struct ScheduleCosts {
  std::vector<PassCosts> stages;  ///< of each virtual stage
  /// Between virtual stage i and i + 1, either way, per message; 0 for all if empty. Nothing is
  /// added between chunks on the same rank.
  std::vector<double> links_s;
};

/// Every chunk costs 1 / chunks of what a rank does with a micro-batch, and every link the same.
ScheduleCosts even_costs(const schedule::Schedule& schedule, const PassCosts& rank,
                         double link_s = 0);

/// When each action of a schedule happens by the rules of fourfold/schedule/schedule.hpp, if
/// actions cost what is said: everything begins as soon as it can. Messages take the link's time
/// from when both ends are posted, one after the other in a channel, and cost the ranks nothing.
/// The event of a message lasts from its posting on that rank until it is complete.
///
/// Sums and maxima of the costs alone: with costs that are multiples of a power of two every time
/// is exact. Linear in the number of actions.
/// @pre check_schedule(schedule) finds nothing; costs.stages.size() == schedule.virtual_stages()
schedule::Timeline simulate(const schedule::Schedule& schedule, const ScheduleCosts& costs);

}  // namespace fourfold::plan
