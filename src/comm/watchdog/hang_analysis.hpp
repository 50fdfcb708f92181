// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rank_state.hpp"

#include <fourfold/comm/watchdog.hpp>

#include <optional>
#include <set>
#include <string>

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

/// Ranks that have taken another branch than the others: those of which two are in calls of the
/// same number on the same communicator that cannot be the same call. @return nothing: no such
std::optional<HangDiagnosis> analyse_branches(const WorldState& world);

/// The same of calls that got through although they were not the same: what they exchanged is not
/// what was meant. By what ranks have told every FlightRecorder::digest_every calls.
std::optional<HangDiagnosis> analyse_histories(const WorldState& world);

/// The verdict on ranks that wait for each other in different calls.
/// @pre each of `ranks` blocks in a call
HangDiagnosis collective_mismatch(const WorldState& world, const std::set<int>& ranks);

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
