// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "enqueue.hpp"
#include "matmul/gemm.hpp"
#include "runtime/threads.hpp"
#include "vectors/storage.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace fourfold::kernels {
namespace {

constexpr std::int64_t sum_columns =
    256;  // of one thread at a time: their sums stay in the first-level cache
constexpr std::int64_t sum_rows =
    64;  // summed by themselves first, which keeps rounding errors small

/// add_column_sums(), now.
template <class Element>
void sum_columns_of(const Element* dy_TO, std::int64_t dy_row, float* sum_O, std::int64_t tokens,
                    std::int64_t outputs) {
  const std::int64_t blocks = (outputs + sum_columns - 1) / sum_columns;
#pragma omp parallel for schedule(static)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t first = block * sum_columns;
    const std::int64_t columns = std::min(sum_columns, outputs - first);
    for (std::int64_t t0 = 0; t0 < tokens; t0 += sum_rows) {
      std::array<float, sum_columns> partial{};
      for (std::int64_t t = t0; t < std::min(tokens, t0 + sum_rows); ++t) {
        const Element* row = dy_TO + t * dy_row + first;
        for (std::int64_t o = 0; o < columns; ++o) {
          partial[o] += to_float(row[o]);
        }
      }
      for (std::int64_t o = 0; o < columns; ++o) {
        sum_O[first + o] += partial[o];
      }
    }
  }
}

}  // namespace

void add_column_sums(DType dtype, const void* dy_TO, std::int64_t dy_row, float* sum_O,
                     std::int64_t tokens, std::int64_t outputs, device::StreamRef stream) {
  with_storage(dtype, [&]<class T>(T) {
    enqueue(stream, [=, dy = static_cast<const T*>(dy_TO)] {
      use_runtime_threads();
      sum_columns_of(dy, dy_row, sum_O, tokens, outputs);
    });
  });
}

}  // namespace fourfold::kernels
