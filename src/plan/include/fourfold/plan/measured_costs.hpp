// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/plan/simulate.hpp>
#include <fourfold/schedule/timeline.hpp>

namespace fourfold::plan {

/// What each virtual stage's passes took on average in a measured timeline: what simulate() needs
/// to say how the same step would go if every micro-batch took as long and messages took no time.
/// The difference between the two is jitter and communication that was not hidden.
///
/// A stage that has backward passes in one piece and in halves (a schedule written by hand) has a
/// mean of each.
ScheduleCosts measured_costs(const schedule::Timeline& measured);

}  // namespace fourfold::plan
