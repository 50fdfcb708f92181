// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch.hpp"

#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/runtime.hpp>

#include <atomic>
#include <map>

namespace fourfold::kernels {
namespace {

/// A thread's, by stream.
using Buffers = std::map<void*, device::StreamBuffer>;

thread_local std::uint64_t moves = 0;             ///< of the thread's memory
std::atomic<std::uint64_t> other_algorithms = 0;  ///< of products, which threads share
thread_local std::size_t taken = 0;

void* at_least(std::size_t bytes, device::StreamRef stream, Buffers& owned) {
  device::StreamBuffer& buffer = owned[stream.native()];
  if (buffer.bytes() < bytes) {
    taken -= buffer.bytes();
    buffer.give_back(stream);
    buffer = device::StreamBuffer(bytes, stream);
    taken += bytes;
    ++moves;
  }
  return buffer.data();
}

}  // namespace

void* scratch(std::size_t bytes, device::StreamRef stream) {
  thread_local Buffers owned;
  return at_least(bytes, stream, owned);
}

void* staging(std::size_t bytes, device::StreamRef stream) {
  thread_local Buffers owned;
  return at_least(bytes, stream, owned);
}

void outdate_recorded_work() noexcept {
  ++other_algorithms;
}

/// Neither part ever falls: the sum is the same as long as both are.
std::uint64_t recorded_work_version() noexcept {
  return moves + other_algorithms;
}

std::size_t scratch_bytes() noexcept {
  return taken;
}

void* host_scratch(std::size_t bytes) {
  thread_local device::Buffer owned;
  if (owned.bytes() < bytes) {
    owned = device::Buffer(bytes, device::MemoryKind::host);
  }
  return owned.data();
}

}  // namespace fourfold::kernels
