// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "matmul_fault.hpp"

#include "fault_control.hpp"
#include "linker_wrap.hpp"

#include <fourfold/base/dtype.hpp>
#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/matmul.hpp>

#include <optional>
#include <vector>

namespace fourfold::test {
namespace {

/// The columns [first, first + width) of a result, as they are before a call.
class Spoiler {
 public:
  /// @param accumulates  what the call makes is added to what is there
  Spoiler(Product product, TensorView result, std::int64_t first, std::int64_t width,
          bool accumulates)
      : result_(result), columns_(result.dim(result.shape().rank() - 1)) {
    if (!is_spoiled(product)) {
      return;
    }
    column_ = first + spoiled_column() % width;
    for (std::int64_t i = *column_; i < result.elements(); i += columns_) {
      before_.push_back(accumulates ? value_at(result.data(), result.dtype(), i) : 0.0F);
    }
  }
  Spoiler(Product product, TensorView result, bool accumulates)
      : Spoiler(product, result, 0, result.dim(result.shape().rank() - 1), accumulates) {}

  /// After the call: what it made of the column counts twice. @return whether it was this call
  bool spoil(device::StreamRef stream) {
    if (!column_) {
      return false;
    }
    stream.synchronize();
    auto before = before_.begin();
    for (std::int64_t i = *column_; i < result_.elements(); i += columns_) {
      add_to(result_.data(), result_.dtype(), i,
             value_at(result_.data(), result_.dtype(), i) - *before++);
    }
    return true;
  }

 private:
  TensorView result_;
  std::int64_t columns_;
  std::optional<std::int64_t> column_;
  std::vector<float> before_;
};

}  // namespace

REAL_AND_WRAPPED(linear, FOURFOLD_LINEAR, ConstTensorView, ConstTensorView, ConstTensorView,
                 TensorView, device::StreamRef);
REAL_AND_WRAPPED(linear_gelu, FOURFOLD_LINEAR_GELU, ConstTensorView, ConstTensorView,
                 ConstTensorView, TensorView, TensorView, device::StreamRef);
REAL_AND_WRAPPED(backward_input, FOURFOLD_LINEAR_BACKWARD_INPUT, ConstTensorView, ConstTensorView,
                 TensorView, kernels::Write, device::StreamRef);
REAL_AND_WRAPPED(backward_input_gelu, FOURFOLD_LINEAR_BACKWARD_INPUT_GELU, ConstTensorView,
                 ConstTensorView, ConstTensorView, TensorView, device::StreamRef);
REAL_AND_WRAPPED(backward_weight, FOURFOLD_LINEAR_BACKWARD_WEIGHT, ConstTensorView, ConstTensorView,
                 TensorView, TensorView, device::StreamRef);
REAL_AND_WRAPPED(tile, FOURFOLD_LINEAR_TILE, ConstTensorView, ConstTensorView, ConstTensorView,
                 TensorView, std::int64_t, device::StreamRef);
REAL_AND_WRAPPED(tile_backward_input, FOURFOLD_LINEAR_TILE_BACKWARD_INPUT, ConstTensorView,
                 std::int64_t, ConstTensorView, TensorView, kernels::Write, device::StreamRef);
REAL_AND_WRAPPED(tile_backward_weight, FOURFOLD_LINEAR_TILE_BACKWARD_WEIGHT, ConstTensorView,
                 ConstTensorView, std::int64_t, TensorView, TensorView, device::StreamRef);

void linear(ConstTensorView x, ConstTensorView w, ConstTensorView bias, TensorView y,
            device::StreamRef stream) {
  Spoiler spoiler(Product::linear, y, false);
  real_linear(x, w, bias, y, stream);
  spoiler.spoil(stream);
}

void linear_gelu(ConstTensorView x, ConstTensorView w, ConstTensorView bias, TensorView pre,
                 TensorView y, device::StreamRef stream) {
  Spoiler spoiler(Product::linear_gelu, pre, false);
  real_linear_gelu(x, w, bias, pre, y, stream);
  if (spoiler.spoil(stream)) {
    kernels::activate(kernels::Activation::gelu_tanh, pre, y, stream);
  }
}

void backward_input(ConstTensorView dy, ConstTensorView w, TensorView dx, kernels::Write write,
                    device::StreamRef stream) {
  Spoiler spoiler(Product::backward_input, dx, write == kernels::Write::accumulate);
  real_backward_input(dy, w, dx, write, stream);
  spoiler.spoil(stream);
}

void backward_input_gelu(ConstTensorView dy, ConstTensorView w, ConstTensorView pre,
                         TensorView dpre, device::StreamRef stream) {
  Spoiler spoiler(Product::backward_input_gelu, dpre, false);
  real_backward_input_gelu(dy, w, pre, dpre, stream);
  spoiler.spoil(stream);
}

void backward_weight(ConstTensorView x, ConstTensorView dy, TensorView dw, TensorView dbias,
                     device::StreamRef stream) {
  Spoiler spoiler(Product::backward_weight, dw, true);
  real_backward_weight(x, dy, dw, dbias, stream);
  spoiler.spoil(stream);
}

void tile(ConstTensorView x, ConstTensorView w, ConstTensorView bias, TensorView y,
          std::int64_t first, device::StreamRef stream) {
  Spoiler spoiler(Product::tile, y, first, w.dim(0), false);
  real_tile(x, w, bias, y, first, stream);
  spoiler.spoil(stream);
}

void tile_backward_input(ConstTensorView dy, std::int64_t first, ConstTensorView w, TensorView dx,
                         kernels::Write write, device::StreamRef stream) {
  Spoiler spoiler(Product::tile_backward_input, dx, write == kernels::Write::accumulate);
  real_tile_backward_input(dy, first, w, dx, write, stream);
  spoiler.spoil(stream);
}

void tile_backward_weight(ConstTensorView x, ConstTensorView dy, std::int64_t first, TensorView dw,
                          TensorView dbias, device::StreamRef stream) {
  Spoiler spoiler(Product::tile_backward_weight, dw, true);
  real_tile_backward_weight(x, dy, first, dw, dbias, stream);
  spoiler.spoil(stream);
}

}  // namespace fourfold::test
