// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Normalisations over the last dim. Legend: T rows, D features. x, y, dy, dx, weight, bias: f32,
/// bf16 or f16, alike; statistics, sums and weight gradients f32. Stream-ordered; bit-identical
/// from run to run, for any number of threads.
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>

namespace fourfold::kernels {

/// y = (x - mean(x)) / sqrt(var(x) + epsilon) * weight + bias (Ba et al. 2016), variance biased.
/// @param mean_T, rstd_T  f32, kept for the backward pass
void layer_norm(ConstTensorView x_TD, ConstTensorView weight_D, ConstTensorView bias_D,
                TensorView y_TD, TensorView mean_T, TensorView rstd_T, float epsilon,
                device::StreamRef stream);

/// sum = x + residual, rounded to storage; y, mean and rstd = layer_norm of that: the bits of the
/// two one after the other, with a pass over memory less. sum may be x or residual.
void add_layer_norm(ConstTensorView x_TD, ConstTensorView residual_TD, ConstTensorView weight_D,
                    ConstTensorView bias_D, TensorView sum_TD, TensorView y_TD, TensorView mean_T,
                    TensorView rstd_T, float epsilon, device::StreamRef stream);

/// dx += gradient (the residual's gradient is already there); dweight += , dbias += in f32.
void layer_norm_backward(ConstTensorView dy_TD, ConstTensorView x_TD, ConstTensorView weight_D,
                         ConstTensorView mean_T, ConstTensorView rstd_T, TensorView dx_TD,
                         TensorView dweight_D, TensorView dbias_D, device::StreamRef stream);

/// y = x / sqrt(mean(x^2) + epsilon) * weight (Zhang, Sennrich 2019).
/// @param rstd_T  f32, kept for the backward pass
void rms_norm(ConstTensorView x_TD, ConstTensorView weight_D, TensorView y_TD, TensorView rstd_T,
              float epsilon, device::StreamRef stream);

/// As add_layer_norm.
void add_rms_norm(ConstTensorView x_TD, ConstTensorView residual_TD, ConstTensorView weight_D,
                  TensorView sum_TD, TensorView y_TD, TensorView rstd_T, float epsilon,
                  device::StreamRef stream);

/// dx += gradient; dweight += in f32.
void rms_norm_backward(ConstTensorView dy_TD, ConstTensorView x_TD, ConstTensorView weight_D,
                       ConstTensorView rstd_T, TensorView dx_TD, TensorView dweight_D,
                       device::StreamRef stream);

}  // namespace fourfold::kernels

// Plain, serial, obviously right bodies of norm.hpp, in double: same contracts. Tests compare the
// fast bodies with them; not for use in a run.
namespace fourfold::kernels::reference {

void layer_norm(ConstTensorView x_TD, ConstTensorView weight_D, ConstTensorView bias_D,
                TensorView y_TD, TensorView mean_T, TensorView rstd_T, float epsilon,
                device::StreamRef stream);

void add_layer_norm(ConstTensorView x_TD, ConstTensorView residual_TD, ConstTensorView weight_D,
                    ConstTensorView bias_D, TensorView sum_TD, TensorView y_TD, TensorView mean_T,
                    TensorView rstd_T, float epsilon, device::StreamRef stream);

void layer_norm_backward(ConstTensorView dy_TD, ConstTensorView x_TD, ConstTensorView weight_D,
                         ConstTensorView mean_T, ConstTensorView rstd_T, TensorView dx_TD,
                         TensorView dweight_D, TensorView dbias_D, device::StreamRef stream);

void rms_norm(ConstTensorView x_TD, ConstTensorView weight_D, TensorView y_TD, TensorView rstd_T,
              float epsilon, device::StreamRef stream);

void add_rms_norm(ConstTensorView x_TD, ConstTensorView residual_TD, ConstTensorView weight_D,
                  TensorView sum_TD, TensorView y_TD, TensorView rstd_T, float epsilon,
                  device::StreamRef stream);

void rms_norm_backward(ConstTensorView dy_TD, ConstTensorView x_TD, ConstTensorView weight_D,
                       ConstTensorView rstd_T, TensorView dx_TD, TensorView dweight_D,
                       device::StreamRef stream);

}  // namespace fourfold::kernels::reference
