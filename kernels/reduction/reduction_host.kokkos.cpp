// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Sums over whole tensors: blocks of a fixed size, each summed in lanes in f64, then the blocks in
/// order.
#include "runtime/launch.hpp"
#include "runtime/scratch.hpp"
#include "vectors/lanes.hpp"
#include "vectors/storage.hpp"

#include <fourfold/kernels/reduction.hpp>

#include <Kokkos_Core.hpp>

namespace fourfold::kernels {
namespace {

/// Part of the numbers: another value rounds differently.
constexpr std::int64_t elements_per_partial = 65536;

template <bool squares>
void sum_elements(const char* label, ConstTensorView x, TensorView result, bool accumulate,
                  device::StreamRef stream) {
  FOURFOLD_EXPECT(result.elements() == 1);
  const std::int64_t blocks = (x.elements() + elements_per_partial - 1) / elements_per_partial;
  auto* partial = scratch<double>(blocks, stream);
  with_storage(x.dtype(), [&]<class T>(T) {
    const auto sum_block = [partial, elements = x.elements(), x_E = x.as<T>()](std::int64_t block) {
      const auto term = [](double value) { return squares ? value * value : value; };
      const T* from = x_E + block * elements_per_partial;
      const std::int64_t left = elements - block * elements_per_partial;
      const std::int64_t count = left < elements_per_partial ? left : elements_per_partial;
      double sum[lanes] = {};
      std::int64_t first = 0;
      for (; first + lanes <= count; first += lanes) {
        prefetch_chunk(from + element_ahead(first, count, 0));
#pragma omp simd
        for (int i = 0; i < lanes; ++i) {
          sum[i] += term(to_float(from[first + i]));
        }
      }
      for (int i = 0; first + i < count; ++i) {
        sum[i] += term(to_float(from[first + i]));
      }
      partial[block] = fold_sum(sum);
    };
    for_each(label, blocks, stream, sum_block);
  });
  for_each("combine_sums", 1, stream, [=, to = result.as<double>()](std::int64_t /*only*/) {
    double total = 0;
    for (std::int64_t block = 0; block < blocks; ++block) {
      total += partial[block];
    }
    *to = accumulate ? *to + total : total;
  });
}

}  // namespace

void sum(ConstTensorView x, TensorView result, bool accumulate, device::StreamRef stream) {
  sum_elements<false>("sum", x, result, accumulate, stream);
}

void sum_of_squares(ConstTensorView x, TensorView result, bool accumulate,
                    device::StreamRef stream) {
  sum_elements<true>("sum_of_squares", x, result, accumulate, stream);
}

}  // namespace fourfold::kernels
