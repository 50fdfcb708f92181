// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "watchdog/rank_state.hpp"

#include <fourfold/comm/watchdog.hpp>

#include <string>

namespace fourfold::comm {

/// "all_reduce #124 of 'dp' (8 bytes, trainer.cpp:300)".
std::string text_of(const ToldCall& call, const WorldState& world);

/// What a rank has said last: "it was in all_reduce ..." or "it was outside any call (saving step
/// 500 for 12 s; its last was
/// ...)".
std::string whereabouts(const WorldState& world, int rank);

/// Rank `rank`, of which the verdict says `what`.
HangDiagnosis::SuspectRank suspect(const WorldState& world, int rank, std::string what);

/// The suspects, a line each, and who waits in what.
std::string reason_of(const WorldState& world, const HangDiagnosis& verdict);

}  // namespace fourfold::comm
