// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>
#include <fourfold/device/timed_event.hpp>

#include <cstddef>
#include <vector>

namespace fourfold::kernels {

/// The times of several ways to do the same, one after the other, round after round, by events of
/// the device between them. The host does not wait. The first round does not count: it loads code
/// and fills caches.
class TimingRounds {
 public:
  static constexpr std::size_t rounds = 4;

  /// Begins on `stream`.
  explicit TimingRounds(device::StreamRef stream);
  /// Behind each of the `ways` of each round.
  void mark();
  bool is_done() const;
  void wait() const;
  /// Microseconds of the rounds that count, of each way. @pre is_done()
  std::vector<std::vector<double>> us(std::size_t ways) const;

 private:
  device::StreamRef stream_;
  std::vector<device::TimedEvent> events_;
};

}  // namespace fourfold::kernels
