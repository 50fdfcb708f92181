// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cross_entropy_backend.hpp"
#include "runtime/launch.hpp"
#include "vectors/storage.hpp"
#include "vectors/vector_math.hpp"

#include <cmath>
#include <limits>

namespace fourfold::kernels {
namespace {

constexpr float lowest = std::numeric_limits<float>::lowest();

struct Join {
  const float* statistics_PT3;
  const std::int32_t* target_T;
  float* loss_T;
  float* normaliser_T2;
  std::int64_t parts;
  std::int64_t tokens;

  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    if (target_T[t] == ignored_target) {
      loss_T[t] = normaliser_T2[2 * t] = normaliser_T2[2 * t + 1] = 0;
      return;
    }
    float largest = lowest;
    float target_logit = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      const float* statistics = of(part, t);
      // NaN among the logits has made the sum NaN, whatever the comparison says.
      largest = statistics[0] > largest ? statistics[0] : largest;
      target_logit += statistics[2];
    }
    float sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      sum += of(part, t)[1] * vector_exp_minus(largest - of(part, t)[0]);
    }
    loss_T[t] = std::log(sum) + (largest - target_logit);
    normaliser_T2[2 * t] = largest;
    normaliser_T2[2 * t + 1] = 1.0F / sum;
  }

  KOKKOS_FORCEINLINE_FUNCTION const float* of(std::int64_t part, std::int64_t t) const {
    return statistics_PT3 + (part * tokens + t) * part_statistics;
  }
};

void expect_rows(ConstTensorView logits_TV, ConstTensorView target_T) {
  FOURFOLD_EXPECT(logits_TV.shape().rank() == 2 && target_T.elements() == logits_TV.dim(0));
}

void classify(ConstTensorView logits_TV, void* gradient_TV, ConstTensorView target_T,
              TensorView loss_T, std::int64_t vocabulary, float gradient_scale,
              device::StreamRef stream) {
  expect_rows(logits_TV, target_T);
  FOURFOLD_EXPECT(vocabulary > 0 && vocabulary <= logits_TV.dim(1));
  FOURFOLD_EXPECT(loss_T.elements() == logits_TV.dim(0));
  classify_rows(logits_TV, gradient_TV, target_T, loss_T, row_length(vocabulary), gradient_scale,
                stream);
}

}  // namespace

void cross_entropy_forward_backward(TensorView logits_TV, ConstTensorView target_T,
                                    TensorView loss_T, std::int64_t vocabulary,
                                    float gradient_scale, device::StreamRef stream) {
  classify(logits_TV, logits_TV.data(), target_T, loss_T, vocabulary, gradient_scale, stream);
}

void cross_entropy(ConstTensorView logits_TV, ConstTensorView target_T, TensorView loss_T,
                   std::int64_t vocabulary, device::StreamRef stream) {
  classify(logits_TV, nullptr, target_T, loss_T, vocabulary, 0.0F, stream);
}

void cross_entropy_part(ConstTensorView logits_TV, std::int64_t first_column,
                        ConstTensorView target_T, TensorView statistics_T3,
                        device::StreamRef stream) {
  expect_rows(logits_TV, target_T);
  FOURFOLD_EXPECT(first_column >= 0);
  FOURFOLD_EXPECT(statistics_T3.elements() == logits_TV.dim(0) * part_statistics);
  classify_part_rows(logits_TV, first_column, target_T, statistics_T3, stream);
}

void cross_entropy_part_gradient(TensorView logits_TV, std::int64_t first_column,
                                 ConstTensorView target_T, ConstTensorView normaliser_T2,
                                 float gradient_scale, device::StreamRef stream) {
  expect_rows(logits_TV, target_T);
  FOURFOLD_EXPECT(first_column >= 0);
  FOURFOLD_EXPECT(normaliser_T2.elements() == 2 * logits_TV.dim(0));
  differentiate_part_rows(logits_TV, first_column, target_T, normaliser_T2, gradient_scale, stream);
}

void cross_entropy_join(ConstTensorView statistics_PT3, ConstTensorView target_T, TensorView loss_T,
                        TensorView normaliser_T2, device::StreamRef stream) {
  FOURFOLD_EXPECT(statistics_PT3.shape().rank() == 3 && statistics_PT3.dim(2) == part_statistics);
  const std::int64_t tokens = statistics_PT3.dim(1);
  FOURFOLD_EXPECT(target_T.elements() == tokens && loss_T.elements() == tokens);
  FOURFOLD_EXPECT(normaliser_T2.elements() == 2 * tokens);
  for_each("cross_entropy_join", tokens, stream,
           Join{statistics_PT3.as<float>(), target_T.as<std::int32_t>(), loss_T.as<float>(),
                normaliser_T2.as<float>(), statistics_PT3.dim(0), tokens});
}

}  // namespace fourfold::kernels
