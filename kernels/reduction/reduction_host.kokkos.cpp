// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Sums over whole tensors: blocks of a fixed size, each summed in lanes in f64, then the blocks in
/// order.
#include "reduction_backend.hpp"
#include "runtime/launch.hpp"
#include "runtime/scratch.hpp"
#include "vectors/lanes.hpp"
#include "vectors/storage.hpp"

#include <Kokkos_Core.hpp>

namespace fourfold::kernels {
namespace {

/// Part of the numbers: another value rounds differently.
constexpr std::int64_t elements_per_partial = 65536;

}  // namespace

template <class T, bool squares>
void sum_elements(const char* label, const SumOperands<T>& with, device::StreamRef stream) {
  const std::int64_t blocks = (with.elements + elements_per_partial - 1) / elements_per_partial;
  auto* partial = scratch<double>(blocks, stream);
  for_each(label, blocks, stream, [with, partial](std::int64_t block) {
    const auto term = [](double value) { return squares ? value * value : value; };
    const T* from = with.x + block * elements_per_partial;
    const std::int64_t left = with.elements - block * elements_per_partial;
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
  });
  for_each("combine_sums", 1, stream, [with, partial, blocks](std::int64_t /*only*/) {
    double total = 0;
    for (std::int64_t block = 0; block < blocks; ++block) {
      total += partial[block];
    }
    *with.result = with.accumulate ? *with.result + total : total;
  });
}
template void sum_elements<float, false>(const char*, const SumOperands<float>&, device::StreamRef);
template void sum_elements<float, true>(const char*, const SumOperands<float>&, device::StreamRef);
template void sum_elements<BFloat16, false>(const char*, const SumOperands<BFloat16>&,
                                            device::StreamRef);
template void sum_elements<BFloat16, true>(const char*, const SumOperands<BFloat16>&,
                                           device::StreamRef);
template void sum_elements<Float16, false>(const char*, const SumOperands<Float16>&,
                                           device::StreamRef);
template void sum_elements<Float16, true>(const char*, const SumOperands<Float16>&,
                                          device::StreamRef);

}  // namespace fourfold::kernels
