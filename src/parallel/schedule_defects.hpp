// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/parallel/schedule.hpp>

#include <optional>
#include <string>

namespace fourfold::parallel {

using Defect = std::optional<std::string>;

/// "rank 1, action 5 (F3)": actions are counted from 0 in the rank's list.
std::string place_text(const Schedule& schedule, int rank, int index);

/// Sizes, and the numbers in every action.
Defect check_ranges(const Schedule& schedule);
/// Compute actions of each rank: all there, once, in an order that its own chunks allow.
Defect check_compute(const Schedule& schedule);
/// Slots and buffers of each rank: taken when free, written and sent at the right time.
Defect check_buffers(const Schedule& schedule);
/// Sends and receives of each channel: the same messages in the same order.
Defect check_channels(const Schedule& schedule);
/// All ranks come to their ends. @pre check_channels found nothing
Defect check_progress(const Schedule& schedule);

}  // namespace fourfold::parallel
