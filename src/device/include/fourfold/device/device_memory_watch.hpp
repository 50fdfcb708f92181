// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace fourfold::device {

/// How full the memory of this process's device is, of all that use it together. On a host build,
/// whose memory MemoryWatch watches, it sees nothing: zeros.
class DeviceMemoryWatch {
 public:
  /// Counts from here on. @throws UserError where there is no device
  DeviceMemoryWatch();

  /// Asks the device: some ten microseconds, in which no work of its is waited for.
  void look();
  /// Looks after each of the first steps, in which buffers find their size, then every ten
  /// seconds. @param now_s  of any clock that goes on. @return whether it looked
  bool look_now_and_then(double now_s);

  std::size_t used_bytes() const noexcept { return used_bytes_; }    ///< at the last look
  std::size_t total_bytes() const noexcept { return total_bytes_; }  ///< that the device has
  /// The most that was seen beyond what was in use at the beginning.
  std::size_t peak_bytes() const noexcept { return peak_bytes_; }

 private:
  std::size_t before_bytes_ = 0;
  std::size_t used_bytes_ = 0;
  std::size_t total_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
  std::int64_t looks_ = 0;
  double looked_s_ = 0;
};

}  // namespace fourfold::device
