// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A profiler that stands by in the process of a test: NVTX hands it what nsys would get. For
/// builds whose ranges are NVTX's.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fourfold::harness {

/// A range as it was seen, in the order in which ranges began.
struct RecordedRange {
  std::size_t thread = 0;  ///< threads by their first range
  std::string name;
  std::vector<std::string> within;  ///< the outermost first
  bool is_over = false;

  std::string path() const;  ///< "step 1 > forward F0 > block 0"
};

/// Of all threads since the last call, in the domain "fourfold". @pre no range is open
std::vector<RecordedRange> take_recorded_ranges();

}  // namespace fourfold::harness
