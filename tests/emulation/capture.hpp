// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Streams that record instead of working. What CUDA refuses meanwhile is refused, and breaks the
/// capture; so is what it allows and nobody who records once to launch often can want: to take or
/// give back memory in the order of the stream, to copy from or to pageable memory.
#pragma once

#include "call_result.hpp"
#include "queues.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

namespace fourfold::emulated {

/// How far into the work of each stream something is behind it.
using Progress = std::map<const Queue*, std::size_t>;

/// What one stream records, with those that events have joined with it. Of the calling thread.
class Capture {
 public:
  explicit Capture(std::shared_ptr<Queue> origin);

  void add(const Queue* queue, Item item);
  /// What an event marks that is recorded on `queue` now.
  const Progress& mark(const Queue* queue) { return after_[queue]; }
  /// Makes `queue` wait for that, and record from here on.
  void join(const std::shared_ptr<Queue>& queue, const Progress& marked);
  /// All streams go on working. @return success, or what is wrong with what was recorded
  cudaError_t end();

  void break_off() { is_broken_ = true; }
  const Queue* origin() const { return joined_.front().get(); }
  /// In the order in which it came, which heeds all waits.
  const std::vector<Item>& items() const { return items_; }

 private:
  std::vector<std::shared_ptr<Queue>> joined_;
  std::map<const Queue*, Progress> after_;
  std::vector<Item> items_;
  bool is_broken_ = false;
};

/// Of the calling thread; or nullptr.
const std::shared_ptr<Capture>& ongoing_capture();

/// What a call returns that may not be made now; success where the thread captures nothing.
cudaError_t refuse_in_capture();
#define FAIL_IN_CAPTURE()                                                             \
  if (const cudaError_t refused = fourfold::emulated::refuse_in_capture(); refused) { \
    return fourfold::emulated::note(refused);                                         \
  }
/// Likewise, of calls about a stream that records, and of the default stream.
cudaError_t refuse_on_capturing(const std::shared_ptr<Queue>& queue);
/// The queue that a call enqueues on: nothing, and why, for what is no stream, and for the default
/// stream while the thread captures.
std::shared_ptr<Queue> queue_for_work(void* stream, cudaError_t& why_not);

}  // namespace fourfold::emulated
