// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The memory of an emulated device: one range of addresses that nobody may touch while it is
/// closed. In its second half is what is mapped in parts, as the driver does (cuMem*).
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
  /// Memory without an address. @return whether there was room
  bool take_pages(std::size_t bytes);
  void give_pages(std::size_t bytes);
  /// Addresses without memory, aligned to 2 MiB; nullptr when there are none left.
  void* reserve(std::size_t bytes);
  /// Whether it was reserved so, and nothing is mapped there.
  bool unreserve(void* data, std::size_t bytes);
  /// Whether all of it is reserved, as one, and not mapped yet. It cannot be used before
  /// set_access().
  bool map(void* data, std::size_t bytes);
  bool set_access(void* data, std::size_t bytes);
  bool unmap(void* data, std::size_t bytes);
  /// Whether all of it is mapped, as one.
  bool is_mapped(const void* data, std::size_t bytes) const;
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
  enum class Mapping { none, closed, open };
  struct Reservation {
    std::size_t bytes = 0;
    Mapping mapping = Mapping::none;
  };

  DeviceMemory();
  void protect(bool accessible) const;
  void fill_with_nan(std::size_t offset, std::size_t bytes);
  std::size_t free_bytes_locked() const;
  Reservation* find_reserved(const void* data, std::size_t bytes);

  std::size_t total_bytes_;
  std::byte* base_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> taken_;     ///< bytes by offset
  std::map<std::size_t, Reservation> reserved_;  ///< by offset
  std::size_t pages_bytes_ = 0;                  ///< taken, mapped or not
  std::size_t highest_ = 0;                      ///< end of what was ever taken
  int depth_ = 0;
};

}  // namespace fourfold::emulated
