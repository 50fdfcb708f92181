// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cross_entropy_backend.hpp"
#include "runtime/launch.hpp"
#include "vectors/lanes.hpp"
#include "vectors/storage.hpp"
#include "vectors/vector_math.hpp"

#include <fourfold/kernels/cross_entropy.hpp>

#include <Kokkos_Core.hpp>

#include <limits>

namespace fourfold::kernels {
namespace {

constexpr float lowest = std::numeric_limits<float>::lowest();

template <class T>
KOKKOS_FORCEINLINE_FUNCTION float largest_of(const T* row, std::int64_t columns) {
  Lanes largest;
  fill(largest, lowest);
  read_chunks(
      NothingAhead{}, columns,
      [&](std::int64_t valid, const Lanes& x) {
        for (int i = 0; i < valid; ++i) {
          largest[i] = x[i] > largest[i] ? x[i] : largest[i];
        }
      },
      row);
  return fold(largest, [](float a, float b) { return b > a ? b : a; });
}

}  // namespace

template <class T>
void cross_entropy_part_rows(const LossPartOperands<T>& with, device::StreamRef stream) {
  for_each("cross_entropy_part", with.rows, stream, [with](std::int64_t t) {
    const std::int64_t columns = with.columns;
    const T* row = with.logits_TV + t * columns;
    const float largest = largest_of(row, columns);
    const std::int64_t target = with.target_T[t] - with.first_column;
    float* statistics = with.statistics_T3 + t * part_statistics;
    statistics[0] = largest;
    statistics[1] = sum_row(
        NothingAhead{}, columns, [largest](float x) { return vector_exp_minus(largest - x); }, row);
    statistics[2] = target >= 0 && target < columns ? to_float(row[target]) : 0.0F;
  });
}
template void cross_entropy_part_rows(const LossPartOperands<float>&, device::StreamRef);
template void cross_entropy_part_rows(const LossPartOperands<BFloat16>&, device::StreamRef);
template void cross_entropy_part_rows(const LossPartOperands<Float16>&, device::StreamRef);

template <class T>
void cross_entropy_part_gradient_rows(const LossPartGradient<T>& with, device::StreamRef stream) {
  for_each("cross_entropy_grad", with.rows, stream, [with](std::int64_t t) {
    const std::int64_t columns = with.columns;
    T* row = with.logits_TV + t * columns;
    if (with.target_T[t] == ignored_target) {
      for (std::int64_t v = 0; v < columns; ++v) {
        row[v] = T{};
      }
      return;
    }
    const float largest = with.normaliser_T2[2 * t];
    const float factor = with.gradient_scale * with.normaliser_T2[2 * t + 1];
    const std::int64_t target = with.target_T[t] - with.first_column;
    const bool here = target >= 0 && target < columns;
    const float target_logit = here ? to_float(row[target]) : 0.0F;
    for_chunks(
        columns, 0,
        [largest, factor](Lanes& y, const Lanes& x) {
#pragma omp simd
          for (int i = 0; i < lanes; ++i) {
            y[i] = vector_exp_minus(largest - x[i]) * factor;
          }
        },
        row, static_cast<const T*>(row));
    if (here) {  // from the float value: what was stored may have been rounded
      store(row[target], vector_exp_minus(largest - target_logit) * factor - with.gradient_scale);
    }
  });
}
template void cross_entropy_part_gradient_rows(const LossPartGradient<float>&, device::StreamRef);
template void cross_entropy_part_gradient_rows(const LossPartGradient<BFloat16>&,
                                               device::StreamRef);
template void cross_entropy_part_gradient_rows(const LossPartGradient<Float16>&, device::StreamRef);

}  // namespace fourfold::kernels
