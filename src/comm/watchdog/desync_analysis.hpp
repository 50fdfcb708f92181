// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "watchdog/rank_state.hpp"

#include <fourfold/comm/watchdog.hpp>

#include <optional>
#include <set>

namespace fourfold::comm {

/// Ranks that have taken another branch than the others: those of which two are in calls of the
/// same number on the same communicator that cannot be the same call. @return nothing: no such
std::optional<HangDiagnosis> analyse_branches(const WorldState& world);

/// The same of calls that got through although they were not the same: what they exchanged is not
/// what was meant. By what ranks have told every FlightRecorder::digest_every calls.
std::optional<HangDiagnosis> analyse_histories(const WorldState& world);

/// The verdict on ranks that wait for each other in different calls.
/// @pre each of `ranks` blocks in a call
HangDiagnosis collective_mismatch(const WorldState& world, const std::set<int>& ranks);

}  // namespace fourfold::comm
