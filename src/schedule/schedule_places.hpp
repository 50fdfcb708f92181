// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/schedule/schedule.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::schedule {

/// How messages about a schedule name its parts: by number, or by place in a text. Lines and
/// columns count from 1; without any the actions are in no text.
struct Places {
  std::vector<int> lines;                          ///< [rank]
  std::vector<std::vector<std::int64_t>> columns;  ///< [rank][n]: of its n-th compute action

  /// "rank 1", or "line 3 (rank 1)".
  std::string rank(int rank) const;
  /// "rank 1, action 5 (F3)": counted from 0 in the rank's list. Or "line 3, column 7 (F3)"; sends
  /// and receives, which no text has, by their compute action: "what line 3, column 7 (F3) sends".
  /// @param schedule  lowered or not
  std::string action(const Schedule& schedule, int rank, int index) const;
};

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
