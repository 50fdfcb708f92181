// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Names for what the host does, that a profiler shows beside what the device does (NVTX, in Nsight
/// Systems: domain "fourfold"). Without a profiler a range costs a comparison, and its name is not
/// even made. A host build has none.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace fourfold::device {

/// Whether somebody looks at ranges.
bool has_profiler() noexcept;

/// From its construction to its end, however that comes; ranges of a thread lie within each other.
///
///   const device::Range range("clip and update");
///   const device::Range range([&] { return fmt::format("step {}", step); });
class Range {
 public:
  explicit Range(std::string_view name) {
    if (has_profiler()) {
      open(std::string(name));
    }
  }
  /// @param name  is called where there is a profiler only
  template <std::invocable Name>
  explicit Range(const Name& name) {
    if (has_profiler()) {
      open(std::string(name()));
    }
  }
  ~Range() {
    if (is_open_) {
      close();
    }
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  void open(const std::string& name) noexcept;
  void close() noexcept;

  bool is_open_ = false;
};

}  // namespace fourfold::device
