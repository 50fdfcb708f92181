// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the literature says a schedule costs, for the schedules with a name: to hold simulate()
/// against. All hold for even costs (even_costs) and links that cost nothing. p stages, m
/// micro-batches, v chunks, rank r; F, B, W: forward, backward-input, backward-weight of a rank.
///
///   schedule     bubble, of every rank     holds for           peak activations of rank r
///   naive        m (p-1) (F+B+W)           all                 1
///   gpipe        (p-1) (F+B+W)             all                 m
///   1f1b         (p-1) (F+B+W)             all                 min(m, p-r)
///   interleaved  (p-1) (F+B+W) / v         m >= p              min(mv, 2(p-r-1) + (v-1)g + 1) / v
///   zb-h1        (p-1) (F+B-W)             m >= p, W <= F, B   min(m, p)
///   zb-v         (p-1) F / 2               m >= 2p-1, F=B=W    p
///
/// g is the longest group of micro-batches: p where p divides m. Peaks are in micro-batches of a
/// rank's activations (all its chunks); they do not depend on costs. Sources: Huang
/// et al. 2019; Narayanan et al. 2021; Qi et al. 2023 and 2024. The papers' zb-v has no bubble
/// because they do not count that rank r begins r F/2 after the first one; within
/// (TimelineSummary:: waiting_s) it has none.
#pragma once

#include <fourfold/plan/simulate.hpp>
#include <fourfold/schedule/schedule_generators.hpp>

#include <optional>

namespace fourfold::plan {

/// In the unit of the costs: how much longer than its work the step takes. Nothing where the table
/// says nothing. @pre validate(request) passes
std::optional<double> bubble_closed_form(const schedule::ScheduleRequest& request,
                                         const PassCosts& rank);

/// In micro-batches. Same precondition; 0 <= rank < request.stages
std::optional<double> peak_activations_closed_form(const schedule::ScheduleRequest& request,
                                                   int rank);

}  // namespace fourfold::plan
