// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// std::vector in memory that devices reach too: what a test hands to a kernel or to a communicator
/// for device memory, and reads when the stream is done.
#pragma once

#include <fourfold/device/buffer.hpp>

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace fourfold::harness {

/// The buffers after the vectors, by address.
class SharedBuffers {
 public:
  static SharedBuffers& get() {
    static auto* const buffers = new SharedBuffers;  // outlives every vector
    return *buffers;
  }
  void* take(std::size_t bytes) {
    device::Buffer buffer(bytes, device::MemoryKind::shared);
    void* const data = buffer.data();
    const std::scoped_lock lock(mutex_);
    buffers_.emplace(data, std::move(buffer));
    return data;
  }
  void give_back(void* data) {
    const std::scoped_lock lock(mutex_);
    buffers_.erase(data);
  }

 private:
  std::mutex mutex_;
  std::map<void*, device::Buffer> buffers_;
};

template <class T>
struct SharedAllocator {
  using value_type = T;
  SharedAllocator() = default;
  template <class U>
  SharedAllocator(const SharedAllocator<U>& /*other*/) {}  // NOLINT(google-explicit-constructor)
  T* allocate(std::size_t count) {
    return static_cast<T*>(SharedBuffers::get().take(count * sizeof(T)));
  }
  void deallocate(T* data, std::size_t /*count*/) { SharedBuffers::get().give_back(data); }
  friend bool operator==(SharedAllocator, SharedAllocator) { return true; }
};

template <class T>
using SharedVector = std::vector<T, SharedAllocator<T>>;

}  // namespace fourfold::harness
