// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "gemm.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/matmul.hpp>

#include <cstddef>

namespace fourfold::kernels {
namespace {

bool has_columns(const ConstTensorView& matrix, std::int64_t first, std::int64_t count) {
  return 0 <= first && first + count <= matrix.dim(1);
}

/// The first row of a matrix from column `first` on.
const void* columns_from(const ConstTensorView& matrix, std::int64_t first) {
  const std::ptrdiff_t bytes = size_in_bytes(matrix.dtype());
  return static_cast<const std::byte*>(matrix.data()) + first * bytes;
}
void* columns_from(const TensorView& matrix, std::int64_t first) {
  const std::ptrdiff_t bytes = size_in_bytes(matrix.dtype());
  return static_cast<std::byte*>(matrix.data()) + first * bytes;
}

/// All of a product's epilogue after it, by kernels of its own.
void multiply_apart(DType dtype, const Gemm& product, device::StreamRef stream) {
  multiply(dtype, without_epilogue(product), stream);
  const Shape shape{product.m, product.n};
  const TensorView c(product.c, product.c_dtype, shape);
  const TensorView aux(product.aux_MN, product.c_dtype, shape);
  switch (product.epilogue) {
    case Epilogue::none:
      return;
    case Epilogue::gelu:
      activate(Activation::gelu_tanh, aux, c, stream);
      return;
    case Epilogue::gelu_backward:
      activate_backward(Activation::gelu_tanh, c, aux, c, stream);
      return;
    case Epilogue::row_sums:
      FOURFOLD_EXPECT(product.a_transposed);
      add_column_sums(dtype, product.a, product.a_row, product.sums_M, product.k, product.m,
                      stream);
      return;
  }
}

void add_to(const float* more, float* sum, std::int64_t count, device::StreamRef stream) {
  const TensorView target(sum, DType::f32, Shape{count});
  add(target, ConstTensorView(more, DType::f32, Shape{count}), target, stream);
}

constexpr EpilogueKernels epilogue_kernels{.apart = multiply_apart, .add = add_to};

}  // namespace

void linear(ConstTensorView x_TI, ConstTensorView w_OI, ConstTensorView bias_O, TensorView y_TO,
            device::StreamRef stream) {
  FOURFOLD_EXPECT(y_TO.dim(1) == w_OI.dim(0));
  linear_tile(x_TI, w_OI, bias_O, y_TO, 0, stream);
}

void linear_tile(ConstTensorView x_TI, ConstTensorView w_OI, ConstTensorView bias_O,
                 TensorView y_TY, std::int64_t first, device::StreamRef stream) {
  FOURFOLD_EXPECT(w_OI.dtype() == x_TI.dtype());
  FOURFOLD_EXPECT(y_TY.dtype() == x_TI.dtype());
  FOURFOLD_EXPECT(w_OI.dim(1) == x_TI.dim(1) && x_TI.dim(1) > 0);
  FOURFOLD_EXPECT(y_TY.dim(0) == x_TI.dim(0) && has_columns(y_TY, first, w_OI.dim(0)));
  FOURFOLD_EXPECT(!bias_O || (bias_O.dtype() == w_OI.dtype() && bias_O.dim(0) == w_OI.dim(0)));
  if (x_TI.dim(0) == 0 || w_OI.dim(0) == 0) {
    return;
  }
  multiply(x_TI.dtype(),
           {.m = x_TI.dim(0),
            .n = w_OI.dim(0),
            .k = x_TI.dim(1),
            .a = x_TI.data(),
            .a_row = x_TI.dim(1),
            .b = w_OI.data(),
            .b_transposed = true,
            .c = columns_from(y_TY, first),
            .c_row = y_TY.dim(1),
            .c_dtype = y_TY.dtype(),
            .bias_N = bias_O.data()},
           stream);
}

void linear_gelu(ConstTensorView x_TI, ConstTensorView w_OI, ConstTensorView bias_O,
                 TensorView pre_TO, TensorView y_TO, device::StreamRef stream) {
  const DType dtype = x_TI.dtype();
  FOURFOLD_EXPECT(w_OI.dtype() == dtype && pre_TO.dtype() == dtype && y_TO.dtype() == dtype);
  FOURFOLD_EXPECT(w_OI.dim(1) == x_TI.dim(1) && x_TI.dim(1) > 0);
  FOURFOLD_EXPECT(pre_TO.dim(0) == x_TI.dim(0) && pre_TO.dim(1) == w_OI.dim(0));
  FOURFOLD_EXPECT(y_TO.shape() == pre_TO.shape());
  FOURFOLD_EXPECT(!bias_O || (bias_O.dtype() == dtype && bias_O.dim(0) == w_OI.dim(0)));
  if (y_TO.elements() == 0) {
    return;
  }
  FOURFOLD_EXPECT(y_TO.data() != pre_TO.data());
  multiply_with_epilogue(dtype,
                         {.m = x_TI.dim(0),
                          .n = w_OI.dim(0),
                          .k = x_TI.dim(1),
                          .a = x_TI.data(),
                          .a_row = x_TI.dim(1),
                          .b = w_OI.data(),
                          .b_transposed = true,
                          .c = y_TO.data(),
                          .c_row = w_OI.dim(0),
                          .c_dtype = dtype,
                          .bias_N = bias_O.data(),
                          .epilogue = Epilogue::gelu,
                          .aux_MN = pre_TO.data()},
                         epilogue_kernels, stream);
}

void linear_backward_input(ConstTensorView dy_TO, ConstTensorView w_OI, TensorView dx_TI,
                           Write write, device::StreamRef stream) {
  FOURFOLD_EXPECT(dy_TO.dim(1) == w_OI.dim(0));
  linear_tile_backward_input(dy_TO, 0, w_OI, dx_TI, write, stream);
}

void linear_tile_backward_input(ConstTensorView dy_TY, std::int64_t first, ConstTensorView w_OI,
                                TensorView dx_TI, Write write, device::StreamRef stream) {
  FOURFOLD_EXPECT(w_OI.dtype() == dy_TY.dtype());
  FOURFOLD_EXPECT(dx_TI.dtype() == dy_TY.dtype() || dx_TI.dtype() == DType::f32);
  FOURFOLD_EXPECT(has_columns(dy_TY, first, w_OI.dim(0)) && w_OI.dim(0) > 0);
  FOURFOLD_EXPECT(dx_TI.dim(0) == dy_TY.dim(0) && dx_TI.dim(1) == w_OI.dim(1));
  if (dx_TI.elements() == 0) {
    return;
  }
  multiply(dy_TY.dtype(),
           {.m = dy_TY.dim(0),
            .n = w_OI.dim(1),
            .k = w_OI.dim(0),
            .a = columns_from(dy_TY, first),
            .a_row = dy_TY.dim(1),
            .b = w_OI.data(),
            .c = dx_TI.data(),
            .c_row = w_OI.dim(1),
            .c_dtype = dx_TI.dtype(),
            .write = write},
           stream);
}

void linear_backward_input_gelu(ConstTensorView dy_TO, ConstTensorView w_OI, ConstTensorView pre_TI,
                                TensorView dpre_TI, device::StreamRef stream) {
  const DType dtype = dy_TO.dtype();
  FOURFOLD_EXPECT(w_OI.dtype() == dtype && pre_TI.dtype() == dtype && dpre_TI.dtype() == dtype);
  FOURFOLD_EXPECT(dy_TO.dim(1) == w_OI.dim(0) && w_OI.dim(0) > 0);
  FOURFOLD_EXPECT(dpre_TI.dim(0) == dy_TO.dim(0) && dpre_TI.dim(1) == w_OI.dim(1));
  FOURFOLD_EXPECT(pre_TI.shape() == dpre_TI.shape());
  if (dpre_TI.elements() == 0) {
    return;
  }
  FOURFOLD_EXPECT(pre_TI.data() != dpre_TI.data());
  // A Gemm has one pointer for what is written and what is read: this is read.
  void* const pre = const_cast<void*>(pre_TI.data());  // NOLINT(*-const-cast)
  multiply_with_epilogue(dtype,
                         {.m = dy_TO.dim(0),
                          .n = w_OI.dim(1),
                          .k = w_OI.dim(0),
                          .a = dy_TO.data(),
                          .a_row = dy_TO.dim(1),
                          .b = w_OI.data(),
                          .c = dpre_TI.data(),
                          .c_row = w_OI.dim(1),
                          .c_dtype = dtype,
                          .epilogue = Epilogue::gelu_backward,
                          .aux_MN = pre},
                         epilogue_kernels, stream);
}

void linear_backward_weight(ConstTensorView x_TI, ConstTensorView dy_TO, TensorView dw_OI,
                            TensorView dbias_O, device::StreamRef stream) {
  FOURFOLD_EXPECT(dw_OI.dim(0) == dy_TO.dim(1));
  linear_tile_backward_weight(x_TI, dy_TO, 0, dw_OI, dbias_O, stream);
}

void linear_tile_backward_weight(ConstTensorView x_TI, ConstTensorView dy_TY, std::int64_t first,
                                 TensorView dw_OI, TensorView dbias_O, device::StreamRef stream) {
  const std::int64_t outputs = dw_OI.dim(0);
  FOURFOLD_EXPECT(x_TI.dtype() == dy_TY.dtype());
  FOURFOLD_EXPECT(dw_OI.dtype() == DType::f32 && x_TI.dim(0) == dy_TY.dim(0));
  FOURFOLD_EXPECT(has_columns(dy_TY, first, outputs) && dw_OI.dim(1) == x_TI.dim(1));
  FOURFOLD_EXPECT(!dbias_O || dbias_O.dim(0) == outputs);
  if (x_TI.dim(0) == 0 || dw_OI.elements() == 0) {
    return;
  }
  const Gemm product{.m = outputs,
                     .n = x_TI.dim(1),
                     .k = dy_TY.dim(0),
                     .a = columns_from(dy_TY, first),
                     .a_transposed = true,
                     .a_row = dy_TY.dim(1),
                     .b = x_TI.data(),
                     .c = dw_OI.data(),
                     .c_row = x_TI.dim(1),
                     .c_dtype = DType::f32,
                     .write = Write::accumulate,
                     .epilogue = dbias_O ? Epilogue::row_sums : Epilogue::none,
                     .sums_M = dbias_O ? dbias_O.as<float>() : nullptr};
  if (dbias_O) {
    multiply_with_epilogue(dy_TY.dtype(), product, epilogue_kernels, stream);
  } else {
    multiply(dy_TY.dtype(), product, stream);
  }
}

}  // namespace fourfold::kernels
