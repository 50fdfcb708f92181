// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/storage.hpp"

#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/matmul.hpp>

namespace fourfold::kernels::reference {

void linear(ConstTensorView x_TI, ConstTensorView w_OI, ConstTensorView bias_O, TensorView y_TO,
            device::StreamRef stream) {
  reference::linear_tile(x_TI, w_OI, bias_O, y_TO, 0, stream);
}

void linear_tile(ConstTensorView x_TI, ConstTensorView w_OI, ConstTensorView bias_O,
                 TensorView y_TY, std::int64_t first, device::StreamRef /*stream*/) {
  const std::int64_t inputs = x_TI.dim(1);
  for (std::int64_t t = 0; t < x_TI.dim(0); ++t) {
    for (std::int64_t o = 0; o < w_OI.dim(0); ++o) {
      double sum = bias_O ? read_element(bias_O, o) : 0.0;
      for (std::int64_t i = 0; i < inputs; ++i) {
        sum += read_element(x_TI, t * inputs + i) * read_element(w_OI, o * inputs + i);
      }
      write_element(y_TY, t * y_TY.dim(1) + first + o, sum);
    }
  }
}

void linear_gelu(ConstTensorView x_TI, ConstTensorView w_OI, ConstTensorView bias_O,
                 TensorView pre_TO, TensorView y_TO, device::StreamRef stream) {
  reference::linear(x_TI, w_OI, bias_O, pre_TO, stream);
  reference::activate(Activation::gelu_tanh, pre_TO, y_TO, stream);
}

void linear_backward_input(ConstTensorView dy_TO, ConstTensorView w_OI, TensorView dx_TI,
                           Write write, device::StreamRef stream) {
  reference::linear_tile_backward_input(dy_TO, 0, w_OI, dx_TI, write, stream);
}

void linear_tile_backward_input(ConstTensorView dy_TY, std::int64_t first, ConstTensorView w_OI,
                                TensorView dx_TI, Write write, device::StreamRef /*stream*/) {
  const std::int64_t inputs = w_OI.dim(1);
  for (std::int64_t t = 0; t < dy_TY.dim(0); ++t) {
    for (std::int64_t i = 0; i < inputs; ++i) {
      double sum = write == Write::accumulate ? read_element(dx_TI, t * inputs + i) : 0.0;
      for (std::int64_t o = 0; o < w_OI.dim(0); ++o) {
        sum +=
            read_element(dy_TY, t * dy_TY.dim(1) + first + o) * read_element(w_OI, o * inputs + i);
      }
      write_element(dx_TI, t * inputs + i, sum);
    }
  }
}

void linear_backward_input_gelu(ConstTensorView dy_TO, ConstTensorView w_OI, ConstTensorView pre_TI,
                                TensorView dpre_TI, device::StreamRef stream) {
  reference::linear_backward_input(dy_TO, w_OI, dpre_TI, Write::replace, stream);
  reference::activate_backward(Activation::gelu_tanh, dpre_TI, pre_TI, dpre_TI, stream);
}

void linear_backward_weight(ConstTensorView x_TI, ConstTensorView dy_TO, TensorView dw_OI,
                            TensorView dbias_O, device::StreamRef stream) {
  reference::linear_tile_backward_weight(x_TI, dy_TO, 0, dw_OI, dbias_O, stream);
}

void linear_tile_backward_weight(ConstTensorView x_TI, ConstTensorView dy_TY, std::int64_t first,
                                 TensorView dw_OI, TensorView dbias_O,
                                 device::StreamRef /*stream*/) {
  const std::int64_t inputs = x_TI.dim(1);
  const std::int64_t tokens = x_TI.dim(0);
  const auto dy = [&](std::int64_t t, std::int64_t o) {
    return read_element(dy_TY, t * dy_TY.dim(1) + first + o);
  };
  for (std::int64_t o = 0; o < dw_OI.dim(0); ++o) {
    for (std::int64_t i = 0; i < inputs; ++i) {
      double sum = read_element(dw_OI, o * inputs + i);
      for (std::int64_t t = 0; t < tokens; ++t) {
        sum += dy(t, o) * read_element(x_TI, t * inputs + i);
      }
      write_element(dw_OI, o * inputs + i, sum);
    }
    if (dbias_O) {
      double sum = read_element(dbias_O, o);
      for (std::int64_t t = 0; t < tokens; ++t) {
        sum += dy(t, o);
      }
      write_element(dbias_O, o, sum);
    }
  }
}

}  // namespace fourfold::kernels::reference
