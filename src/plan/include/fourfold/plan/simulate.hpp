// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/schedule_generators.hpp>
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

// What the literature says a schedule costs, for the schedules with a name: to hold simulate()
// against. All hold for even costs (even_costs) and links that cost nothing. p stages, m
// micro-batches, v chunks, rank r; F, B, W: forward, backward-input, backward-weight of a rank.
//
//   schedule     bubble, of every rank     holds for           peak activations of rank r
//   naive        m (p-1) (F+B+W)           all                 1
//   gpipe        (p-1) (F+B+W)             all                 m
//   1f1b         (p-1) (F+B+W)             all                 min(m, p-r)
//   interleaved  (p-1) (F+B+W) / v         m >= p              min(mv, 2(p-r-1) + (v-1)g + 1) / v
//   zb-h1        (p-1) (F+B-W)             m >= p, W <= F, B   min(m, p)
//   zb-v         (p-1) F / 2               m >= 2p-1, F=B=W    p
//
// g is the longest group of micro-batches: p where p divides m. Peaks are in micro-batches of a
// rank's activations (all its chunks); they do not depend on costs. Sources: Huang
// et al. 2019; Narayanan et al. 2021; Qi et al. 2023 and 2024. The papers' zb-v has no bubble
// because they do not count that rank r begins r F/2 after the first one; within
// (TimelineSummary:: waiting_s) it has none.

/// In the unit of the costs: how much longer than its work the step takes. Nothing where the table
/// says nothing. @pre validate(request) passes
std::optional<double> bubble_closed_form(const schedule::ScheduleRequest& request,
                                         const PassCosts& rank);

/// In micro-batches. Same precondition; 0 <= rank < request.stages
std::optional<double> peak_activations_closed_form(const schedule::ScheduleRequest& request,
                                                   int rank);

/// What each virtual stage's passes took on average in a measured timeline: what simulate() needs
/// to say how the same step would go if every micro-batch took as long and messages took no time.
/// The difference between the two is jitter and communication that was not hidden.
///
/// A stage that has backward passes in one piece and in halves (a schedule written by hand) has a
/// mean of each.
ScheduleCosts measured_costs(const schedule::Timeline& measured);

}  // namespace fourfold::plan
