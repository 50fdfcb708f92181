// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/schedule/schedule.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fourfold::schedule {

/// Proves a lowered schedule right before anything runs it, or names its first defect with rank,
/// action and reason.
///
/// Proven: every micro-batch runs forward and backward once through every virtual stage, in an
/// order that each rank can keep; every message is sent once from a buffer that still holds it and
/// received once into a buffer that is free, in the same order at both ends; a slot is never taken
/// while in use; and the ranks come to the end of their lists under rendezvous (rule 2 of
/// schedule.hpp), so under any transport.
///
/// Knows nothing of how the list was made. Linear in the number of actions.
/// @param slot_limits  [rank][chunk] slots that there is memory for; empty: as many as it uses
/// @return nothing when it is right
std::optional<std::string> check_schedule(const Schedule& schedule,
                                          const std::vector<std::vector<int>>& slot_limits = {});

}  // namespace fourfold::schedule
