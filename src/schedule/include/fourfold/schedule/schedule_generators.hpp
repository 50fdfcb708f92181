// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The schedules that have a name. Pure functions: every rank computes all lists, and they agree.
/// p stages, m micro-batches, v chunks; T_F, T_B, T_W: time of forward, backward-input and
/// backward-weight of one micro-batch on one rank (all its chunks); M: activations of one
/// micro-batch on one rank. Closed forms are in fourfold/plan/simulate.hpp.
///
///   naive        one micro-batch at a time: bubble m (p-1) (T_F+T_B+T_W), peak M
///   gpipe        all forward, then all backward (Huang et al. 2019): bubble (p-1)(T_F+T_B+T_W),
///                peak m M
///   1f1b         backward as soon as it can (Narayanan et al. 2019, PipeDream-Flush): the same
///                bubble, peak min(m, p-rank) M
///   interleaved  1f1b over v >= 2 chunks in a loop (Narayanan et al. 2021): bubble 1/v of it when
///                p divides m; v times the messages. Where it does not, the groups of
///                micro-batches are longer than p
///   zb-h1        1f1b with the weight halves delayed (Qi et al. 2023): bubble
///                (p-1)(T_F+T_B-T_W), peak min(m, p) M on every rank
///   zb-v         two chunks as a V, split backward (Qi et al. 2024): with T_F = T_B = T_W and
///                m >= 2p-1 no rank waits between its first and its last action; rank r begins
///                r T_F/2 after the first, so the step takes (p-1) T_F/2 longer than its work.
///                Peak p M on every rank
#pragma once

#include <fourfold/schedule/schedule.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::schedule {

struct ScheduleRequest {
  std::string name = "1f1b";
  int stages = 1;
  int micro_batches = 1;
  int chunks = 0;  ///< 0: usual_chunks(name)
  /// Sequences of the global batch per micro-batch number: dp * train.micro_batch. Only for
  /// messages, so that they name the train.global_batch that works. 0: not known
  std::int64_t sequences = 0;
};

/// naive, gpipe, 1f1b, interleaved, zb-h1, zb-v.
const std::vector<std::string>& schedule_names();
/// 2 for interleaved and zb-v, else 1. @pre name is one of schedule_names()
int usual_chunks(std::string_view name);

/// The chunks that make_schedule() gives the schedule.
/// @throws UserError as validate(), about name and chunks: they are looked at first
int chunks_of(const ScheduleRequest& request);

/// What make_schedule() refuses, without making it: an unknown name, chunks that the schedule
/// cannot have, fewer micro-batches than it needs (interleaved: one per stage), sizes out of range.
/// @throws UserError (config) naming mesh.schedule, mesh.chunks, mesh.pp or train.global_batch and
///   the nearest value that works
void validate(const ScheduleRequest& request);

/// The schedule, lowered: with slots and transfers. Same errors as validate().
Schedule make_schedule(const ScheduleRequest& request);

}  // namespace fourfold::schedule
