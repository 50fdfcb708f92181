// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "watchdog/rank_state.hpp"

#include <fourfold/comm/watchdog.hpp>

#include <optional>

namespace fourfold::comm {

/// Whether a run hangs, and who is to blame. A pure function.
///
/// - A rank whose connection is closed without a word has ended. If all of several ranks on one
///   machine have, and others live, it is the machine.
/// - A rank that says nothing for limits.silence_s is stopped, or its machine is gone; which of the
///   two, its machine's network stack tells: it takes what is sent to a process that stands still.
/// - A rank whose communication has failed for some seconds, as that between devices notices
/// itself:
///   a rank that has said nothing since is the cause; else those that have noticed are named.
/// - Two ranks in calls of the same number on the same communicator, of another operation or (of
///   reductions and broadcasts) other bytes, have taken different branches.
/// - The same where such calls got through to each other: every so many calls, ranks compare what
///   they have called on a communicator. Those that differ from most are named; all, if no most is.
/// - A rank that has blocked in one call for limits.deadline_s waits for somebody. The server goes
///   along who waits for whom (of a collective: its ranks that have not called it, or, where all
///   have, those whose devices are in another call; of a message: the peer) to ranks that wait for
///   nobody. If there are none, ranks wait for each other in
///   different calls, and those in the rarest call are named.
///
/// @return nothing as long as all is well
std::optional<HangDiagnosis> analyse_hang(const WorldState& world, const WatchdogLimits& limits);

}  // namespace fourfold::comm
