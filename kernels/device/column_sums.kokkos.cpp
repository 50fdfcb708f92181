// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Column sums on a device: neighbouring threads read neighbouring columns, each some rows of one.
#include "launch.hpp"
#include "product.hpp"
#include "scratch.hpp"
#include "storage.hpp"

#include <cstddef>

namespace fourfold::kernels {
namespace {

constexpr std::int64_t rows_per_sum = 64;

template <class T>
struct SumRows {
  const T* dy_TO;
  std::int64_t dy_row;
  float* partial;  // [chunks, outputs]
  std::int64_t tokens;
  std::int64_t outputs;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const std::int64_t o = item % outputs;
    const std::int64_t begin = item / outputs * rows_per_sum;
    const std::int64_t end = begin + rows_per_sum < tokens ? begin + rows_per_sum : tokens;
    float sum = 0;
    for (std::int64_t t = begin; t < end; ++t) {
      sum += to_float(dy_TO[t * dy_row + o]);
    }
    partial[item] = sum;
  }
};

struct AddPartials {
  const float* partial;
  float* sum_O;
  std::int64_t chunks;
  std::int64_t outputs;

  KOKKOS_FUNCTION void operator()(std::int64_t o) const {
    float sum = 0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      sum += partial[chunk * outputs + o];
    }
    sum_O[o] += sum;
  }
};

}  // namespace

void add_column_sums(DType dtype, const void* dy_TO, std::int64_t dy_row, float* sum_O,
                     std::int64_t tokens, std::int64_t outputs, device::StreamRef stream) {
  const std::int64_t chunks = (tokens + rows_per_sum - 1) / rows_per_sum;
  auto* const partial = static_cast<float*>(
      scratch(static_cast<std::size_t>(chunks * outputs) * sizeof(float), stream));
  with_storage(dtype, [&]<class T>(T) {
    for_each("column_sums", chunks * outputs, stream,
             SumRows<T>{static_cast<const T*>(dy_TO), dy_row, partial, tokens, outputs});
  });
  for_each("add_column_sums", outputs, stream, AddPartials{partial, sum_O, chunks, outputs});
}

}  // namespace fourfold::kernels
