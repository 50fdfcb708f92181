// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/schedule/schedule.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fourfold::schedule {

/// How messages about a schedule name its parts: by number.
class Places {
 public:
  /// @param schedule  borrowed
  explicit Places(const Schedule& schedule) : schedule_(&schedule) {}
  virtual ~Places() = default;
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  /// "rank 1"
  virtual std::string rank(int rank) const;
  /// "rank 1, action 5 (F3)": counted from 0 in the rank's list.
  virtual std::string action(int rank, int index) const;

 protected:
  const Schedule& schedule() const noexcept { return *schedule_; }

 private:
  const Schedule* schedule_;
};

/// Where the compute actions of a schedule stand in a text; both count from 1.
struct Cell {
  int line = 0;
  int column = 0;
};
struct CellTable {
  std::vector<int> lines;                ///< [rank]
  std::vector<std::vector<Cell>> cells;  ///< [rank][n]: of its n-th compute action
};

/// By place in the text: "line 3 (rank 1)", "line 3, column 7 (F3)". Sends and receives, which no
/// text has, by their compute action: "what line 3, column 7 (F3) sends".
class CellPlaces : public Places {
 public:
  /// @param schedule  lowered or not; its compute actions are those of the table, in order
  CellPlaces(const Schedule& schedule, const CellTable& table) : Places(schedule), table_(&table) {}

  std::string rank(int rank) const override;
  std::string action(int rank, int index) const override;

 private:
  const CellTable* table_;
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
