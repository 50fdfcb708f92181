// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "timing_rounds.hpp"

#include <fourfold/base/contract.hpp>

namespace fourfold::kernels {

TimingRounds::TimingRounds(device::StreamRef stream) : stream_(stream) {
  mark();
}

void TimingRounds::mark() {
  events_.emplace_back().record(stream_);
}

bool TimingRounds::is_done() const {
  return events_.back().has_happened();
}

void TimingRounds::wait() const {
  events_.back().synchronize();
}

std::vector<std::vector<double>> TimingRounds::us(std::size_t ways) const {
  FOURFOLD_EXPECT(events_.size() == 1 + rounds * ways);
  std::vector<std::vector<double>> result(ways);
  for (std::size_t i = ways; i < rounds * ways; ++i) {
    result[i % ways].push_back(events_[i + 1].us_since(events_[i]));
  }
  return result;
}

}  // namespace fourfold::kernels
