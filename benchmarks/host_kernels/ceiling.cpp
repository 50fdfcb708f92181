// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "ceiling.hpp"

#include <algorithm>

namespace fourfold::benchmarks {
namespace {

/// A few kilobytes at a time from each stream in turn, as a vectorised loop over all streams does.
constexpr std::int64_t words_per_turn = 512;

std::uint64_t* turn_of(std::vector<std::uint64_t>& array, int element_bytes, std::int64_t turn) {
  // A stream of narrower elements advances in proportion.
  return array.data() + turn * words_per_turn * element_bytes / 8;
}

void add_read(std::uint64_t* sum, const std::uint64_t* from, std::int64_t words) {
  for (std::int64_t i = 0; i < words; ++i) {
    sum[i] += from[i];
  }
}

}  // namespace

StreamCeiling::StreamCeiling(const Mix& mix, std::int64_t elements)
    : mix_(mix), elements_(elements / words_per_turn * words_per_turn) {
  for (const auto& kind : {mix.read, mix.updated, mix.written}) {
    for (const int element_bytes : kind) {
      arrays_.emplace_back(static_cast<std::size_t>(elements_ * element_bytes / 8), 1);
    }
  }
}

void StreamCeiling::run() {
  for (std::int64_t turn = 0; turn < elements_ / words_per_turn; ++turn) {
    std::uint64_t sum[words_per_turn] = {};
    for (std::size_t k = 0; k < 4; ++k) {
      add_read(sum, turn_of(arrays_[k], mix_.read[k], turn), words_per_turn * mix_.read[k] / 8);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      std::uint64_t* updated = turn_of(arrays_[4 + k], mix_.updated[k], turn);
      add_read(updated, sum, words_per_turn * mix_.updated[k] / 8);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      std::uint64_t* written = turn_of(arrays_[8 + k], mix_.written[k], turn);
      std::copy_n(sum, words_per_turn * mix_.written[k] / 8, written);
    }
  }
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
