// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "lanes.hpp"
#include "launch.hpp"
#include "storage.hpp"
#include "vector_math.hpp"

#include <fourfold/kernels/cross_entropy.hpp>
#include <fourfold/kernels/vocabulary_cross_entropy.hpp>

#include <Kokkos_Core.hpp>

#include <limits>

namespace fourfold::kernels {
namespace {

constexpr float lowest = std::numeric_limits<float>::lowest();

template <class T>
KOKKOS_FORCEINLINE_FUNCTION float largest_of(const T* row, std::int64_t columns) {
  Lanes largest;
  for (float& lane : largest) {
    lane = lowest;
  }
  read_chunks(
      NothingAhead{}, columns,
      [&](int valid, const Lanes& x) {
        for (int i = 0; i < valid; ++i) {
          largest[i] = x[i] > largest[i] ? x[i] : largest[i];
        }
      },
      row);
  return fold(largest, [](float a, float b) { return b > a ? b : a; });
}

template <class T>
struct Part {
  const T* logits_TV;
  const std::int32_t* target_T;
  float* statistics_T3;
  std::int64_t columns;
  std::int64_t first_column;

  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const T* row = logits_TV + t * columns;
    const float largest = largest_of(row, columns);
    const std::int64_t target = target_T[t] - first_column;
    float* statistics = statistics_T3 + t * part_statistics;
    statistics[0] = largest;
    statistics[1] = sum_row(
        NothingAhead{}, columns, [largest](float x) { return vector_exp_minus(largest - x); }, row);
    statistics[2] = target >= 0 && target < columns ? to_float(row[target]) : 0.0F;
  }
};

template <class T>
struct PartGradient {
  T* logits_TV;
  const std::int32_t* target_T;
  const float* normaliser_T2;
  std::int64_t columns;
  std::int64_t first_column;
  float gradient_scale;

  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    T* row = logits_TV + t * columns;
    if (target_T[t] == ignored_target) {
      for (std::int64_t v = 0; v < columns; ++v) {
        row[v] = T{};
      }
      return;
    }
    const float largest = normaliser_T2[2 * t];
    const float factor = gradient_scale * normaliser_T2[2 * t + 1];
    const std::int64_t target = target_T[t] - first_column;
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
      store(row[target], vector_exp_minus(largest - target_logit) * factor - gradient_scale);
    }
  }
};

}  // namespace

void cross_entropy_part(ConstTensorView logits_TV, std::int64_t first_column,
                        ConstTensorView target_T, TensorView statistics_T3,
                        device::StreamRef stream) {
  const std::int64_t tokens = logits_TV.dim(0);
  FOURFOLD_EXPECT(logits_TV.shape().rank() == 2 && target_T.elements() == tokens);
  FOURFOLD_EXPECT(statistics_T3.elements() == tokens * part_statistics && first_column >= 0);
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    for_each("cross_entropy_part", tokens, stream,
             Part<T>{logits_TV.as<T>(), target_T.as<std::int32_t>(), statistics_T3.as<float>(),
                     logits_TV.dim(1), first_column});
  });
}

void cross_entropy_part_gradient(TensorView logits_TV, std::int64_t first_column,
                                 ConstTensorView target_T, ConstTensorView normaliser_T2,
                                 float gradient_scale, device::StreamRef stream) {
  const std::int64_t tokens = logits_TV.dim(0);
  FOURFOLD_EXPECT(logits_TV.shape().rank() == 2 && target_T.elements() == tokens);
  FOURFOLD_EXPECT(normaliser_T2.elements() == 2 * tokens && first_column >= 0);
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    for_each(
        "cross_entropy_grad", tokens, stream,
        PartGradient<T>{logits_TV.as<T>(), target_T.as<std::int32_t>(), normaliser_T2.as<float>(),
                        logits_TV.dim(1), first_column, gradient_scale});
  });
}

}  // namespace fourfold::kernels
