// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch.hpp"

#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/runtime.hpp>

#include <algorithm>
#include <atomic>
#include <vector>

namespace fourfold::kernels {
namespace {

struct StreamScratch {
  device::StreamRef stream;
  device::StreamBuffer buffer;
};

thread_local std::uint64_t moves = 0;             ///< of the thread's memory
std::atomic<std::uint64_t> other_algorithms = 0;  ///< of products, which threads share
thread_local std::size_t taken = 0;

void* at_least(std::size_t bytes, device::StreamRef stream, std::vector<StreamScratch>& owned) {
  auto found = std::find_if(owned.begin(), owned.end(),
                            [&](const StreamScratch& one) { return one.stream == stream; });
  if (found == owned.end()) {
    found = owned.insert(owned.end(), {stream, device::StreamBuffer()});
  }
  if (found->buffer.bytes() < bytes) {
    taken -= found->buffer.bytes();
    found->buffer.give_back(stream);
    found->buffer = device::StreamBuffer(bytes, stream);
    taken += bytes;
    ++moves;
  }
  return found->buffer.data();
}

}  // namespace

void* scratch(std::size_t bytes, device::StreamRef stream) {
  thread_local std::vector<StreamScratch> owned;
  return at_least(bytes, stream, owned);
}

void* staging(std::size_t bytes, device::StreamRef stream) {
  thread_local std::vector<StreamScratch> owned;
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
