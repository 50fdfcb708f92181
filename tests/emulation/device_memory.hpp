// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The memory of an emulated device: one range of addresses that nobody may touch while it is
/// closed.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace fourfold::emulated {

class DeviceMemory {
 public:
  static DeviceMemory& get();

  /// Aligned to 512 bytes; nullptr when there is no room.
  void* allocate(std::size_t bytes);
  /// Whether `data` was allocated.
  bool free(void* data);
  bool contains(const void* address) const;
  std::size_t total_bytes() const { return total_bytes_; }
  std::size_t free_bytes() const;

  /// Lets this process touch the memory until close(). Calls nest.
  void open();
  void close();

  /// Closes it for a while, whatever is open.
  class Closed {
   public:
    Closed();
    ~Closed();
    Closed(const Closed&) = delete;
    Closed& operator=(const Closed&) = delete;

   private:
    int depth_;
  };

 private:
  DeviceMemory();
  void protect(bool accessible) const;

  std::size_t total_bytes_;
  std::byte* base_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> taken_;  ///< bytes by offset
  std::size_t highest_ = 0;                   ///< end of what was ever taken
  int depth_ = 0;
};

}  // namespace fourfold::emulated
