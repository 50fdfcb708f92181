// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What of a step can be done while the one before it may still turn out to be wrong.
#pragma once

#include <fourfold/schedule/schedule.hpp>

namespace fourfold::schedule {

/// Puts to the beginning of each list the forward passes of the warm-up, with their sends and
/// receives, that make a whole by themselves: every message that one of them sends, another of them
/// receives; and tells in Schedule::ahead how many actions those are. They can be done, thrown away
/// and done again with no message left over. Each part keeps its order, so that the whole can run
/// as before; receives may be posted later than before.
/// @pre lowered, and check_schedule() finds nothing
Schedule forwards_first(Schedule schedule);

}  // namespace fourfold::schedule
