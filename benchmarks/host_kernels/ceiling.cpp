// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "ceiling.hpp"

namespace fourfold::benchmarks {

StreamCeiling::StreamCeiling(const Mix& mix, std::int64_t elements)
    : mix_(mix), elements_(elements) {
  for (std::size_t kind = 0; kind < 3; ++kind) {
    for (int k = 0; k < mix.count[kind]; ++k) {
      streams_.emplace_back(static_cast<std::size_t>(elements * mix.bytes[kind] / 4 + 1), 1);
    }
  }
}

void StreamCeiling::run() {
  mix_.pass(streams_, elements_);
}

ExpCeiling::ExpCeiling() {
  for (std::size_t i = 0; i < elements; ++i) {
    x_[i] = 20.0F * static_cast<float>(i) / elements - 15.0F;
  }
  y_.fill(0);
}

void ExpCeiling::run() {
  for (int pass = 0; pass < 64; ++pass) {
#pragma omp simd
    for (std::size_t i = 0; i < elements; ++i) {
      y_[i] = kernels::vector_exp(x_[i]);
    }
    x_[static_cast<std::size_t>(pass)] += 1e-7F * y_[static_cast<std::size_t>(pass)];
  }
}

}  // namespace fourfold::benchmarks
