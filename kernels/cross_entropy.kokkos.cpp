// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "lanes.hpp"
#include "launch.hpp"
#include "storage.hpp"
#include "vector_math.hpp"

#include <fourfold/kernels/cross_entropy.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>

namespace fourfold::kernels {
namespace {

/// e^(logit - largest), NaN for NaN.
KOKKOS_FORCEINLINE_FUNCTION float exp_of_difference(float logit, float largest) {
  return vector_exp_minus(largest - logit);
}

/// Of one row: the largest logit, and the sum of exp(logit - largest).
struct RowSums {
  float largest;
  float sum;
};

template <class T>
KOKKOS_FORCEINLINE_FUNCTION float row_maximum(const T* row, std::int64_t vocabulary) {
  Lanes largest;
  const float first = to_float(row[0]);
  for (float& lane : largest) {
    lane = first;
  }
  read_chunks(
      vocabulary,
      [&](int valid, const float* logit) {
        if (valid == lanes) {
#pragma omp simd
          for (int i = 0; i < lanes; ++i) {
            largest[i] = logit[i] > largest[i] ? logit[i] : largest[i];
          }
        } else {
          for (int i = 0; i < valid; ++i) {
            largest[i] = logit[i] > largest[i] ? logit[i] : largest[i];
          }
        }
      },
      row);
  return fold(largest, [](float a, float b) { return b > a ? b : a; });
}

template <class T>
KOKKOS_FORCEINLINE_FUNCTION RowSums row_sums(const T* row, std::int64_t vocabulary) {
  const float largest = row_maximum(row, vocabulary);
  const float sum = sum_row(
      vocabulary, [largest](float logit) { return exp_of_difference(logit, largest); }, row);
  return {largest, sum};
}

template <class T, bool with_gradient>
struct CrossEntropy {
  const T* logits_TV;
  T* gradient_TV;  ///< logits_TV again, or nullptr
  const std::int32_t* target_T;
  float* loss_T;
  std::int64_t columns;
  std::int64_t vocabulary;
  float gradient_scale;

  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const T* row = logits_TV + t * columns;
    const std::int32_t target = target_T[t];
    if (target == ignored_target) {
      loss_T[t] = 0;
      if constexpr (with_gradient) {
        clear(gradient_TV + t * columns, 0);
      }
      return;
    }
    const RowSums sums = row_sums(row, vocabulary);
    const float target_logit = to_float(row[target]);
    loss_T[t] = std::log(sums.sum) + (sums.largest - target_logit);
    if constexpr (with_gradient) {
      T* gradient = gradient_TV + t * columns;
      const float factor = gradient_scale / sums.sum;
      const float largest = sums.largest;
      for_chunks(
          vocabulary,
          [largest, factor](float* y, const float* logit) {
#pragma omp simd
            for (int i = 0; i < lanes; ++i) {
              y[i] = exp_of_difference(logit[i], largest) * factor;
            }
          },
          gradient, row);
      clear(gradient, vocabulary);
      store(gradient[target], exp_of_difference(target_logit, largest) * factor - gradient_scale);
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void clear(T* row, std::int64_t first) const {
    for (std::int64_t v = first; v < columns; ++v) {
      row[v] = T{};
    }
  }
};

void expect_operands(ConstTensorView logits_TV, ConstTensorView target_T, ConstTensorView loss_T,
                     std::int64_t vocabulary) {
  FOURFOLD_EXPECT(logits_TV.shape().rank() == 2);
  FOURFOLD_EXPECT(vocabulary > 0 && vocabulary <= logits_TV.dim(1));
  FOURFOLD_EXPECT(target_T.elements() == logits_TV.dim(0));
  FOURFOLD_EXPECT(loss_T.elements() == logits_TV.dim(0));
}

}  // namespace

void cross_entropy_forward_backward(TensorView logits_TV, ConstTensorView target_T,
                                    TensorView loss_T, std::int64_t vocabulary,
                                    float gradient_scale, device::StreamRef stream) {
  expect_operands(logits_TV, target_T, loss_T, vocabulary);
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    for_each(
        "cross_entropy", logits_TV.dim(0), stream,
        CrossEntropy<T, true>{logits_TV.as<T>(), logits_TV.as<T>(), target_T.as<std::int32_t>(),
                              loss_T.as<float>(), logits_TV.dim(1), vocabulary, gradient_scale});
  });
}

void cross_entropy(ConstTensorView logits_TV, ConstTensorView target_T, TensorView loss_T,
                   std::int64_t vocabulary, device::StreamRef stream) {
  expect_operands(logits_TV, target_T, loss_T, vocabulary);
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    for_each("cross_entropy", logits_TV.dim(0), stream,
             CrossEntropy<T, false>{logits_TV.as<T>(), nullptr, target_T.as<std::int32_t>(),
                                    loss_T.as<float>(), logits_TV.dim(1), vocabulary, 0.0F});
  });
}

}  // namespace fourfold::kernels
