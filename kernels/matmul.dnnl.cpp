// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "product.hpp"
#include "storage.hpp"
#include "threads.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

namespace fourfold::kernels {
namespace {

/// y_TO += bias_O; rows of y are y_row apart.
void add_bias(float* y_TO, std::int64_t y_row, const float* bias_O, std::int64_t tokens,
              std::int64_t outputs) {
#pragma omp parallel for schedule(static)
  for (std::int64_t t = 0; t < tokens; ++t) {
    float* row = y_TO + t * y_row;
    for (std::int64_t o = 0; o < outputs; ++o) {
      row[o] += bias_O[o];
    }
  }
}

constexpr std::int64_t sum_columns =
    256;  // of one thread at a time: their sums stay in the first-level cache
constexpr std::int64_t sum_rows =
    64;  // summed by themselves first, which keeps rounding errors small

/// sum_O += column sums of dy, whose rows are dy_row apart. Each column is summed in the same order
/// for any number of threads.
template <class Element>
void add_column_sums(const Element* dy_TO, std::int64_t dy_row, float* sum_O, std::int64_t tokens,
                     std::int64_t outputs) {
  const std::int64_t blocks = (outputs + sum_columns - 1) / sum_columns;
#pragma omp parallel for schedule(static)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t first = block * sum_columns;
    const std::int64_t columns = std::min(sum_columns, outputs - first);
    for (std::int64_t t0 = 0; t0 < tokens; t0 += sum_rows) {
      std::array<float, sum_columns> partial{};
      for (std::int64_t t = t0; t < std::min(tokens, t0 + sum_rows); ++t) {
        const Element* row = dy_TO + t * dy_row + first;
        for (std::int64_t o = 0; o < columns; ++o) {
          partial[static_cast<std::size_t>(o)] += to_float(row[o]);
        }
      }
      for (std::int64_t o = 0; o < columns; ++o) {
        sum_O[first + o] += partial[static_cast<std::size_t>(o)];
      }
    }
  }
}

bool has_columns(const ConstTensorView& matrix, std::int64_t first, std::int64_t count) {
  return 0 <= first && first + count <= matrix.dim(1);
}

/// The first row of a matrix from column `first` on.
const void* columns_from(const ConstTensorView& matrix, std::int64_t first) {
  const auto bytes = static_cast<std::ptrdiff_t>(size_in_bytes(matrix.dtype()));
  return static_cast<const std::byte*>(matrix.data()) + first * bytes;
}
void* columns_from(const TensorView& matrix, std::int64_t first) {
  const auto bytes = static_cast<std::ptrdiff_t>(size_in_bytes(matrix.dtype()));
  return static_cast<std::byte*>(matrix.data()) + first * bytes;
}

void multiply(DType dtype, const Product& product) {
  if (dtype == DType::f32) {
    f32_product(product);
  } else if (dtype == DType::bf16 && has_native_bf16()) {
    bf16_product_native(product);
  } else {
    widened_product(dtype, product);
  }
}

}  // namespace

void f32_product(const Product& p) {
  FOURFOLD_EXPECT(p.c_dtype == DType::f32 && p.c_row >= p.n);
  FOURFOLD_EXPECT(p.a_row >= (p.a_transposed ? p.m : p.k));
  const dnnl_status_t status =
      dnnl_sgemm(p.a_transposed ? 'T' : 'N', p.b_transposed ? 'T' : 'N', p.m, p.n, p.k, 1.0F,
                 static_cast<const float*>(p.a), p.a_row, static_cast<const float*>(p.b),
                 p.b_transposed ? p.k : p.n, p.write == Write::accumulate ? 1.0F : 0.0F,
                 static_cast<float*>(p.c), p.c_row);
  if (status != dnnl_success) {
    throw SystemError(ExitCode::internal,
                      fmt::format("dnnl_sgemm failed with status {} for a product of {} x {} x {}",
                                  static_cast<int>(status), p.m, p.n, p.k));
  }
  if (p.bias_N != nullptr) {
    add_bias(static_cast<float*>(p.c), p.c_row, static_cast<const float*>(p.bias_N), p.m, p.n);
  }
}

bool has_native_bf16() {
  static const bool result = [] {
    const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
    return isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx;
  }();
  return result;
}

void linear(ConstTensorView x_TI, ConstTensorView w_OI, ConstTensorView bias_O, TensorView y_TO,
            device::StreamRef stream) {
  FOURFOLD_EXPECT(y_TO.dim(1) == w_OI.dim(0));
  linear_tile(x_TI, w_OI, bias_O, y_TO, 0, stream);
}

void linear_tile(ConstTensorView x_TI, ConstTensorView w_OI, ConstTensorView bias_O,
                 TensorView y_TY, std::int64_t first, device::StreamRef /*stream*/) {
  FOURFOLD_EXPECT(w_OI.dtype() == x_TI.dtype());
  FOURFOLD_EXPECT(y_TY.dtype() == x_TI.dtype());
  FOURFOLD_EXPECT(w_OI.dim(1) == x_TI.dim(1) && x_TI.dim(1) > 0);
  FOURFOLD_EXPECT(y_TY.dim(0) == x_TI.dim(0) && has_columns(y_TY, first, w_OI.dim(0)));
  FOURFOLD_EXPECT(!bias_O || (bias_O.dtype() == w_OI.dtype() && bias_O.dim(0) == w_OI.dim(0)));
  if (x_TI.dim(0) == 0 || w_OI.dim(0) == 0) {
    return;
  }
  use_runtime_threads();
  multiply(x_TI.dtype(), {.m = x_TI.dim(0),
                          .n = w_OI.dim(0),
                          .k = x_TI.dim(1),
                          .a = x_TI.data(),
                          .a_row = x_TI.dim(1),
                          .b = w_OI.data(),
                          .b_transposed = true,
                          .c = columns_from(y_TY, first),
                          .c_row = y_TY.dim(1),
                          .c_dtype = y_TY.dtype(),
                          .bias_N = bias_O.data()});
}

void linear_backward_input(ConstTensorView dy_TO, ConstTensorView w_OI, TensorView dx_TI,
                           Write write, device::StreamRef stream) {
  FOURFOLD_EXPECT(dy_TO.dim(1) == w_OI.dim(0));
  linear_tile_backward_input(dy_TO, 0, w_OI, dx_TI, write, stream);
}

void linear_tile_backward_input(ConstTensorView dy_TY, std::int64_t first, ConstTensorView w_OI,
                                TensorView dx_TI, Write write, device::StreamRef /*stream*/) {
  FOURFOLD_EXPECT(w_OI.dtype() == dy_TY.dtype());
  FOURFOLD_EXPECT(dx_TI.dtype() == dy_TY.dtype() || dx_TI.dtype() == DType::f32);
  FOURFOLD_EXPECT(has_columns(dy_TY, first, w_OI.dim(0)) && w_OI.dim(0) > 0);
  FOURFOLD_EXPECT(dx_TI.dim(0) == dy_TY.dim(0) && dx_TI.dim(1) == w_OI.dim(1));
  if (dx_TI.elements() == 0) {
    return;
  }
  use_runtime_threads();
  multiply(dy_TY.dtype(), {.m = dy_TY.dim(0),
                           .n = w_OI.dim(1),
                           .k = w_OI.dim(0),
                           .a = columns_from(dy_TY, first),
                           .a_row = dy_TY.dim(1),
                           .b = w_OI.data(),
                           .c = dx_TI.data(),
                           .c_row = w_OI.dim(1),
                           .c_dtype = dx_TI.dtype(),
                           .write = write});
}

void linear_backward_weight(ConstTensorView x_TI, ConstTensorView dy_TO, TensorView dw_OI,
                            TensorView dbias_O, device::StreamRef stream) {
  FOURFOLD_EXPECT(dw_OI.dim(0) == dy_TO.dim(1));
  linear_tile_backward_weight(x_TI, dy_TO, 0, dw_OI, dbias_O, stream);
}

void linear_tile_backward_weight(ConstTensorView x_TI, ConstTensorView dy_TY, std::int64_t first,
                                 TensorView dw_OI, TensorView dbias_O,
                                 device::StreamRef /*stream*/) {
  const std::int64_t outputs = dw_OI.dim(0);
  FOURFOLD_EXPECT(x_TI.dtype() == dy_TY.dtype());
  FOURFOLD_EXPECT(dw_OI.dtype() == DType::f32 && x_TI.dim(0) == dy_TY.dim(0));
  FOURFOLD_EXPECT(has_columns(dy_TY, first, outputs) && dw_OI.dim(1) == x_TI.dim(1));
  FOURFOLD_EXPECT(!dbias_O || dbias_O.dim(0) == outputs);
  if (x_TI.dim(0) == 0 || dw_OI.elements() == 0) {
    return;
  }
  use_runtime_threads();
  multiply(dy_TY.dtype(), {.m = outputs,
                           .n = x_TI.dim(1),
                           .k = dy_TY.dim(0),
                           .a = columns_from(dy_TY, first),
                           .a_transposed = true,
                           .a_row = dy_TY.dim(1),
                           .b = x_TI.data(),
                           .c = dw_OI.data(),
                           .c_row = x_TI.dim(1),
                           .c_dtype = DType::f32,
                           .write = Write::accumulate});
  if (dbias_O) {
    with_storage(dy_TY.dtype(), [&]<class T>(T) {
      add_column_sums(dy_TY.as<T>() + first, dy_TY.dim(1), dbias_O.as<float>(), dy_TY.dim(0),
                      outputs);
    });
  }
}

}  // namespace fourfold::kernels
