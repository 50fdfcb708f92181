// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch.hpp"
#include "vectors/vector_math.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/cross_entropy.hpp>

#include <Kokkos_Core.hpp>

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

}  // namespace

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
