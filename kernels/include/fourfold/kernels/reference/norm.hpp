// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain, serial, obviously right bodies of norm.hpp, in double: same contracts. Tests compare the
/// fast bodies with them; not for use in a run.
#pragma once

#include <fourfold/kernels/norm.hpp>

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
