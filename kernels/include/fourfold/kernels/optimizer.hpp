// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Optimizer updates over flat ranges. master, moments and gradients are f32; weight is the copy
/// the products read (f32, bf16 or f16), or absent when master itself is that copy. Stream-ordered;
/// bit-identical from run to run and for any cut of the range (each element depends on itself
/// only).
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/place.hpp>
#include <fourfold/kernels/stochastic_rounding.hpp>

#include <cstdint>
#include <optional>

namespace fourfold::kernels {

struct AdamStep {
  float lr = 0;
  double beta1 = 0.9;  ///< in double: 1 - beta2 in float would be off by 1e-5
  double beta2 = 0.95;
  float epsilon = 1e-8F;
  float weight_decay = 0;  ///< 0 for parameters that do not decay
  /// AdamW (Loshchilov, Hutter 2019); false: decay is added to the gradient (Adam)
  bool decoupled = true;
  std::int64_t step = 1;  ///< 1 for the first update: bias corrections are 1 - beta^step
  /// device scalar multiplied into every gradient (clipping, loss scale); one that is not finite
  /// makes the update leave every bit as it was
  const float* gradient_scale = nullptr;
  Place place = Place::device;  ///< of the update, and of all it reads and writes
  /// Of the weight, which is bf16 then; without: to nearest
  std::optional<StochasticRounding> stochastic_rounding = {};
};
/// As torch.optim.AdamW: p -= lr * wd * p; m, v updated; p -= lr * m_hat / (sqrt(v_hat) + epsilon).
void adam(const AdamStep& step, TensorView master, TensorView exp_avg, TensorView exp_avg_sq,
          ConstTensorView gradient, TensorView weight, device::StreamRef stream);

struct SgdStep {
  float lr = 0;
  float momentum = 0;
  float weight_decay = 0;
  const float* gradient_scale = nullptr;                       ///< as AdamStep's
  Place place = Place::device;                                 ///< likewise
  std::optional<StochasticRounding> stochastic_rounding = {};  ///< likewise
};
/// As torch.optim.SGD (dampening 0, no Nesterov): g += wd * p; buffer = momentum * buffer + g; p -=
/// lr * buffer.
/// @param momentum_buffer  may be absent when momentum is 0
void sgd(const SgdStep& step, TensorView master, TensorView momentum_buffer,
         ConstTensorView gradient, TensorView weight, device::StreamRef stream);

struct OuterStep {
  float lr = 0.7F;
  float momentum = 0.9F;
  Place place = Place::device;  ///< as AdamStep's
};
/// The outer step of local SGD (DiLoCo, Douillard et al. 2023), as torch.optim.SGD with nesterov:
/// d = outer - mean; v = momentum * v + d; outer -= lr * (d + momentum * v).
/// @param outer     the weights that the round began with; becomes those of the next
/// @param velocity  v
/// @param master    comes with the mean of what the replicas have made of them; becomes outer
void outer_nesterov(const OuterStep& step, TensorView outer, TensorView velocity, TensorView master,
                    device::StreamRef stream);

}  // namespace fourfold::kernels
