// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule_places.hpp"

#include <fourfold/schedule/schedule.hpp>

#include <optional>
#include <string>

namespace fourfold::schedule {

using Defect = std::optional<std::string>;

/// Sizes, and the numbers in every action.
Defect check_ranges(const Schedule& schedule);
/// Compute actions of each rank: all there, once, in an order that its own chunks allow.
Defect check_compute(const Schedule& schedule, const Places& places);
/// Slots and buffers of each rank: taken when free, written and sent at the right time.
Defect check_buffers(const Schedule& schedule, const Places& places);
/// Sends and receives of each channel: the same messages in the same order.
Defect check_channels(const Schedule& schedule, const Places& places);
/// All ranks come to their ends. @pre check_channels found nothing
Defect check_progress(const Schedule& schedule, const Places& places);
/// All of these in this order.
Defect check_all(const Schedule& schedule, const Places& places);

}  // namespace fourfold::schedule
