// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The scalar by which an update multiplies all gradients: clipping, loss scale, and whether there
/// is an update at all. Made on the device; stream-ordered.
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>

namespace fourfold::kernels {

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
