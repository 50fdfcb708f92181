// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The one form that all products of linear layers take, and its bodies.
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/matmul.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// What a product is made for, beside or instead of c.
enum class Epilogue : std::uint8_t {
  none,
  gelu,           ///< aux_MN = what c would be; c = gelu(aux)
  gelu_backward,  ///< c = what it would be, times gelu'(aux_MN)
  row_sums,       ///< also sums_M += the sums of the rows of op(a)
};

/// c_MN = op(a) op(b) (+ c_MN), row-major; op transposes what is stored transposed.
/// a and b have the same dtype, f32, bf16 or f16; c has it too, or is f32.
struct Gemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const void* a = nullptr;
  bool a_transposed = false;  ///< stored [k, m]
  std::int64_t a_row = 0;     ///< elements from one stored row of a to the next
  const void* b = nullptr;
  bool b_transposed = false;  ///< stored [n, k]
  void* c = nullptr;
  std::int64_t c_row = 0;  ///< elements from one row of c to the next
  DType c_dtype = DType::f32;
  Write write = Write::replace;
  const void* bias_N = nullptr;  ///< dtype of a, added to each row; only with Write::replace
  Epilogue epilogue = Epilogue::none;
  void* aux_MN = nullptr;   ///< dtype and row of c, which is the dtype of a, and Write::replace
  float* sums_M = nullptr;  ///< with Write::accumulate
};

/// What an epilogue comes after, when it is made apart.
inline Gemm without_epilogue(Gemm product) {
  if (product.epilogue == Epilogue::gelu) {
    product.c = product.aux_MN;
  }
  product.epilogue = Epilogue::none;
  product.aux_MN = nullptr;
  product.sums_M = nullptr;
  return product;
}

/// Enqueues a product of operands of `dtype`, through the library of the device.
/// @pre it has no epilogue
void multiply(DType dtype, const Gemm& product, device::StreamRef stream);

/// What a library's epilogue needs of the other kernels.
struct EpilogueKernels {
  /// Enqueues the product, and apart from it what its epilogue says.
  void (*apart)(DType dtype, const Gemm& product, device::StreamRef stream) = nullptr;
  /// Enqueues sum += more.
  void (*add)(const float* more, float* sum, std::int64_t count,
              device::StreamRef stream) = nullptr;
};

/// Enqueues a product with an epilogue: as one operation where the library of the device has one
/// for it, else apart. Which of them depends on the product only. As one, sums of products go into
/// gelu and its derivative before they are rounded to c's dtype.
void multiply_with_epilogue(DType dtype, const Gemm& product, const EpilogueKernels& kernels,
                            device::StreamRef stream);

/// Enqueues sum_O += column sums of dy, whose rows are dy_row elements apart. The order of a sum
/// depends on the sizes only.
void add_column_sums(DType dtype, const void* dy_TO, std::int64_t dy_row, float* sum_O,
                     std::int64_t tokens, std::int64_t outputs, device::StreamRef stream);

// -- on the CPU -----------------------------------------------------------------------------------

/// f32 operands.
void f32_product(const Gemm& product);

/// bf16 operands through the CPU's own bf16 instructions: oneDNN primitives, kept per shape and per
/// thread.
void bf16_product_native(const Gemm& product);

/// bf16 or f16 operands, which `dtype` says, on a CPU without such instructions: blocks are widened
/// to f32 into scratch that is kept per thread, and multiplied there.
void widened_product(DType dtype, const Gemm& product);

/// Whether this CPU multiplies bf16 in hardware.
bool has_native_bf16();

}  // namespace fourfold::kernels
