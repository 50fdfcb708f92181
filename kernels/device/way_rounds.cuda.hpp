// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace fourfold::kernels {

/// The times of several ways to do the same, one after the other, round after round, by events of
/// the device between them. The host does not wait. The first round does not count: it loads code
/// and fills caches.
class WayRounds {
 public:
  static constexpr std::size_t rounds = 4;

  /// Begins on `stream`.
  explicit WayRounds(device::StreamRef stream);
  /// Behind each of the `ways` of each round.
  void mark();
  bool is_done() const;
  void wait() const;
  /// Microseconds of the rounds that count, of each way. @pre is_done()
  std::vector<std::vector<double>> us(std::size_t ways) const;

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const { static_cast<void>(cudaEventDestroy(event)); }
  };
  using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy>;

  device::StreamRef stream_;
  std::vector<Event> events_;
};

/// Whether `stream` is being captured into a graph, where nothing may be made or asked.
bool is_captured(device::StreamRef stream);

}  // namespace fourfold::kernels
