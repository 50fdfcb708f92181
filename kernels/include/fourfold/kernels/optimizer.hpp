// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Optimizer updates over flat ranges. master, moments and gradients are f32; weight is the copy
/// the products read (f32, bf16 or f16), or absent when master itself is that copy. Stream-ordered;
/// bit-identical from run to run and for any cut of the range (each element depends on itself
/// only).
#pragma once

#include <fourfold/base/philox.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/operands.hpp>

#include <cstdint>
#include <optional>

namespace fourfold::kernels {

// f32 to bf16, up or down at random (Gupta et al. 2015): of two neighbours in bf16 a number
// between them becomes the upper one with the probability (x - lower) / (upper - lower), so that
// the mean of what it becomes is the number, and steps too small for bf16 are not lost. What is a
// bf16 already stays; NaN stays NaN; beyond the largest bf16 the upper neighbour is infinity.

/// Which random bits elements get: a pure function of the key and the number of an element in its
/// logical tensor, so the same on every mesh. Element i of a range is element j = begin + i of a
/// part of that tensor; its number is first + j / row_elements * row_stride + j % row_elements.
struct StochasticRounding {
  PhiloxKey key;                  ///< rounding_key()
  std::int64_t first = 0;         ///< number of the part's first element
  std::int64_t row_elements = 1;  ///< of the part
  std::int64_t row_stride = 1;    ///< of the tensor
  std::int64_t begin = 0;         ///< elements of the part before the range
};

/// One key per (seed, update, tensor). @param tensor  tells tensors apart: name_salt()
inline PhiloxKey rounding_key(std::uint64_t seed, std::int64_t update, std::uint64_t tensor) {
  return philox_key(seed, RandomUse::weight_rounding, mix64(mix64(update) + tensor));
}

/// target (bf16) = source (f32), rounded at random. Stream-ordered; the same bits for any cut.
/// @pre source.elements() == target.elements(); no overlap
void round_stochastically(const StochasticRounding& rounding, ConstTensorView source,
                          TensorView target, device::StreamRef stream,
                          MemorySpace place = MemorySpace::device);

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
  MemorySpace place = MemorySpace::device;  ///< of the update, and of all it reads and writes
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
  MemorySpace place = MemorySpace::device;                     ///< likewise
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
  MemorySpace place = MemorySpace::device;  ///< as AdamStep's
};
/// The outer step of local SGD (DiLoCo, Douillard et al. 2023), as torch.optim.SGD with nesterov:
/// d = outer - mean; v = momentum * v + d; outer -= lr * (d + momentum * v).
/// @param outer     the weights that the round began with; becomes those of the next
/// @param velocity  v
/// @param master    comes with the mean of what the replicas have made of them; becomes outer
void outer_nesterov(const OuterStep& step, TensorView outer, TensorView velocity, TensorView master,
                    device::StreamRef stream);

// The scalar by which an update multiplies all gradients: clipping, loss scale, and whether there
// is an update at all. Made on the device; stream-ordered.

/// What gradients are to be multiplied by that are loss_scale times too large, on the device:
/// norm = sqrt(sum_of_squares) / loss_scale, as clip_grad_norm_ of PyTorch has it, and
/// scale = min(1, max_norm / (norm + 1e-6)) / loss_scale; max_norm <= 0: scale = 1 / loss_scale.
/// Where norm is not finite, scale is NaN, so that no update follows from such gradients.
/// @param sum_of_squares  f64 scalar;  @param norm, scale  f32 scalars
/// @param loss_scale      what the loss was multiplied by; a power of two adds no rounding
void clip_scale(ConstTensorView sum_of_squares, float max_norm, float loss_scale, TensorView norm,
                TensorView scale, device::StreamRef stream);

/// Makes `scale` NaN where `norm` is not finite. f32 scalars.
void void_scale(ConstTensorView norm, TensorView scale, device::StreamRef stream);

}  // namespace fourfold::kernels

// The references of all these: plain, serial, obviously right, in double; same contracts. Tests
// compare the fast kernels with them; not for use in a run.
namespace fourfold::kernels::reference {

void adam(const AdamStep& step, TensorView master, TensorView exp_avg, TensorView exp_avg_sq,
          ConstTensorView gradient, TensorView weight, device::StreamRef stream);

void sgd(const SgdStep& step, TensorView master, TensorView momentum_buffer,
         ConstTensorView gradient, TensorView weight, device::StreamRef stream);

void outer_nesterov(const OuterStep& step, TensorView outer, TensorView velocity, TensorView master,
                    device::StreamRef stream);

void clip_scale(ConstTensorView sum_of_squares, float max_norm, float loss_scale, TensorView norm,
                TensorView scale, device::StreamRef stream);

void void_scale(ConstTensorView norm, TensorView scale, device::StreamRef stream);

/// Of element `i` of the range.
BFloat16 rounded_stochastically(const StochasticRounding& rounding, std::int64_t i, float value);

void round_stochastically(const StochasticRounding& rounding, ConstTensorView source,
                          TensorView target, device::StreamRef stream,
                          MemorySpace place = MemorySpace::device);

}  // namespace fourfold::kernels::reference
