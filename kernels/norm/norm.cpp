// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "norm_backend.hpp"
#include "vectors/storage.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/norm.hpp>

namespace fourfold::kernels {
namespace {

/// What all norms ask of their operands.
void expect_rows(ConstTensorView x_TD, ConstTensorView weight_D, ConstTensorView rstd_T) {
  FOURFOLD_EXPECT(x_TD.shape().rank() == 2);
  FOURFOLD_EXPECT(weight_D.elements() == x_TD.dim(1) && weight_D.dtype() == x_TD.dtype());
  FOURFOLD_EXPECT(rstd_T.elements() == x_TD.dim(0));
}

void expect_alike(ConstTensorView x_TD, ConstTensorView y_TD) {
  FOURFOLD_EXPECT(y_TD.shape() == x_TD.shape() && y_TD.dtype() == x_TD.dtype());
}

template <class T>
NormOperands<T> forward_operands(ConstTensorView x_TD, ConstTensorView weight_D, TensorView y_TD,
                                 TensorView rstd_T, float epsilon) {
  expect_rows(x_TD, weight_D, rstd_T);
  expect_alike(x_TD, y_TD);
  NormOperands<T> operands;
  operands.x_TD = x_TD.as<T>();
  operands.weight_D = weight_D.as<T>();
  operands.y_TD = y_TD.as<T>();
  operands.rstd_T = rstd_T.as<float>();
  operands.rows = x_TD.dim(0);
  operands.features = row_length(x_TD.dim(1));
  operands.epsilon = epsilon;
  return operands;
}

template <class T>
void centre(NormOperands<T>& operands, ConstTensorView bias_D, TensorView mean_T) {
  FOURFOLD_EXPECT(bias_D.elements() == operands.features && mean_T.elements() == operands.rows);
  operands.bias_D = bias_D.as<T>();
  operands.mean_T = mean_T.as<float>();
}

template <class T>
void add_first(NormOperands<T>& operands, ConstTensorView residual_TD, TensorView sum_TD) {
  expect_alike(residual_TD, sum_TD);
  FOURFOLD_EXPECT(sum_TD.dim(0) == operands.rows && sum_TD.dim(1) == operands.features);
  operands.residual_TD = residual_TD.as<T>();
  operands.sum_TD = sum_TD.as<T>();
}

template <class T>
NormBackwardOperands<T> backward_operands(ConstTensorView dy_TD, ConstTensorView x_TD,
                                          ConstTensorView weight_D, ConstTensorView rstd_T,
                                          TensorView dx_TD, TensorView dweight_D) {
  expect_rows(x_TD, weight_D, rstd_T);
  expect_alike(x_TD, dy_TD);
  expect_alike(x_TD, dx_TD);
  FOURFOLD_EXPECT(dweight_D.elements() == x_TD.dim(1));
  NormBackwardOperands<T> operands;
  operands.dy_TD = dy_TD.as<T>();
  operands.x_TD = x_TD.as<T>();
  operands.weight_D = weight_D.as<T>();
  operands.rstd_T = rstd_T.as<float>();
  operands.dx_TD = dx_TD.as<T>();
  operands.dweight_D = dweight_D.as<float>();
  operands.rows = x_TD.dim(0);
  operands.features = row_length(x_TD.dim(1));
  return operands;
}

}  // namespace

void layer_norm(ConstTensorView x_TD, ConstTensorView weight_D, ConstTensorView bias_D,
                TensorView y_TD, TensorView mean_T, TensorView rstd_T, float epsilon,
                device::StreamRef stream) {
  with_storage(x_TD.dtype(), [&]<class T>(T) {
    auto operands = forward_operands<T>(x_TD, weight_D, y_TD, rstd_T, epsilon);
    centre(operands, bias_D, mean_T);
    norm_rows("layer_norm", operands, stream);
  });
}

void add_layer_norm(ConstTensorView x_TD, ConstTensorView residual_TD, ConstTensorView weight_D,
                    ConstTensorView bias_D, TensorView sum_TD, TensorView y_TD, TensorView mean_T,
                    TensorView rstd_T, float epsilon, device::StreamRef stream) {
  with_storage(x_TD.dtype(), [&]<class T>(T) {
    auto operands = forward_operands<T>(x_TD, weight_D, y_TD, rstd_T, epsilon);
    add_first(operands, residual_TD, sum_TD);
    centre(operands, bias_D, mean_T);
    norm_rows("add_layer_norm", operands, stream);
  });
}

void rms_norm(ConstTensorView x_TD, ConstTensorView weight_D, TensorView y_TD, TensorView rstd_T,
              float epsilon, device::StreamRef stream) {
  with_storage(x_TD.dtype(), [&]<class T>(T) {
    norm_rows("rms_norm", forward_operands<T>(x_TD, weight_D, y_TD, rstd_T, epsilon), stream);
  });
}

void add_rms_norm(ConstTensorView x_TD, ConstTensorView residual_TD, ConstTensorView weight_D,
                  TensorView sum_TD, TensorView y_TD, TensorView rstd_T, float epsilon,
                  device::StreamRef stream) {
  with_storage(x_TD.dtype(), [&]<class T>(T) {
    auto operands = forward_operands<T>(x_TD, weight_D, y_TD, rstd_T, epsilon);
    add_first(operands, residual_TD, sum_TD);
    norm_rows("add_rms_norm", operands, stream);
  });
}

void layer_norm_backward(ConstTensorView dy_TD, ConstTensorView x_TD, ConstTensorView weight_D,
                         ConstTensorView mean_T, ConstTensorView rstd_T, TensorView dx_TD,
                         TensorView dweight_D, TensorView dbias_D, device::StreamRef stream) {
  FOURFOLD_EXPECT(mean_T.elements() == x_TD.dim(0));
  FOURFOLD_EXPECT(dbias_D.elements() == x_TD.dim(1));
  with_storage(x_TD.dtype(), [&]<class T>(T) {
    auto operands = backward_operands<T>(dy_TD, x_TD, weight_D, rstd_T, dx_TD, dweight_D);
    operands.mean_T = mean_T.as<float>();
    operands.dbias_D = dbias_D.as<float>();
    norm_rows_backward("layer_norm_bwd", operands, stream);
  });
}

void rms_norm_backward(ConstTensorView dy_TD, ConstTensorView x_TD, ConstTensorView weight_D,
                       ConstTensorView rstd_T, TensorView dx_TD, TensorView dweight_D,
                       device::StreamRef stream) {
  with_storage(x_TD.dtype(), [&]<class T>(T) {
    norm_rows_backward("rms_norm_bwd",
                       backward_operands<T>(dy_TD, x_TD, weight_D, rstd_T, dx_TD, dweight_D),
                       stream);
  });
}

}  // namespace fourfold::kernels
