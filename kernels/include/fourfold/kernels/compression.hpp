// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Gradients in fewer bytes for the wire: in fewer bits, or as thin factors. Stream-ordered; the
/// same bits every time.
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/operands.hpp>

#include <cstdint>

namespace fourfold::kernels {

// Fewer bits. What a code leaves out is kept and added to what is coded next (error feedback: Seide
// et al. 2014; Karimireddy et al. 2019), so that it is late, not lost. Each block depends on its
// own elements only.

enum class GradientCodec : std::uint8_t {
  bf16,  ///< the upper half of each f32, rounded to nearest even
  /// Blocks of 256 elements, the last one shorter, share an f32 scale s = max |x| / 127; an element
  /// is the integer nearest to x / s. Block after block: s, then a byte per element
  int8,
};

/// Elements that share a scale in int8.
inline constexpr std::int64_t codec_block_elements = 256;

/// Bytes of `elements` in a code: 2 each, or 1 each and 4 per block; then up to a multiple of 4.
std::int64_t payload_bytes(GradientCodec codec, std::int64_t elements) noexcept;

/// With x = gradient + error_scale * error: payload = code(x), and
/// new_error = (x - what the payload decodes to) / error_scale.
/// What is not finite decodes to what is not: in bf16 itself, in int8 all of its block. new_error
/// is then not finite either. int8 takes blocks below 2^-100 for zeros.
/// @param gradient     f32
/// @param error        f32 with as many elements; absent: zeros
/// @param error_scale  a power of two, so that it rounds nothing
/// @param new_error    f32; may be the memory of error
/// @param payload      u8, payload_bytes() of them, at a multiple of 4 bytes in memory
void encode(GradientCodec codec, ConstTensorView gradient, ConstTensorView error, float error_scale,
            TensorView new_error, TensorView payload, device::StreamRef stream);

/// gradient (f32) = what encode() wrote, or is increased by it.
void decode(GradientCodec codec, ConstTensorView payload, TensorView gradient, Write write,
            device::StreamRef stream);

// A matrix as a product of two thin ones, for gradients on the wire (PowerSGD: Vogels et al.
// 2019). Legend: N rows and M columns of the matrix, R its rank; both factors lie by columns, each
// of them a row in memory. f32. Stream-ordered; the order of every sum depends on the sizes only.

/// Makes the rows of `x_RN` orthonormal in place, from the first to the last: Gram-Schmidt, each
/// row twice, with sums in f64. A row that is a combination of those before it, to 1e-6 of its own
/// length, becomes zero: nothing but rounding would be left of it. What is not finite stays so.
void orthonormalise_rows(TensorView x_RN, device::StreamRef stream);

/// y = a^T b.
void low_rank_product(ConstTensorView a_RN, ConstTensorView b_RM, TensorView y_NM,
                      device::StreamRef stream);

/// y = factor * (y - a^T b): what the product leaves out.
void low_rank_remainder(ConstTensorView a_RN, ConstTensorView b_RM, float factor, TensorView y_NM,
                        device::StreamRef stream);

/// Rows of `x_RM` in which all is zero become those of `other_RM`.
void replace_zero_rows(ConstTensorView other_RM, TensorView x_RM, device::StreamRef stream);

}  // namespace fourfold::kernels

// The references of all these: plain, serial, obviously right, low-rank products in double; same
// contracts. Tests compare the fast kernels with them; not for use in a run.
namespace fourfold::kernels::reference {

void encode(GradientCodec codec, ConstTensorView gradient, ConstTensorView error, float error_scale,
            TensorView new_error, TensorView payload, device::StreamRef stream);

void decode(GradientCodec codec, ConstTensorView payload, TensorView gradient, Write write,
            device::StreamRef stream);

void orthonormalise_rows(TensorView x_RN, device::StreamRef stream);

void low_rank_product(ConstTensorView a_RN, ConstTensorView b_RM, TensorView y_NM,
                      device::StreamRef stream);

void low_rank_remainder(ConstTensorView a_RN, ConstTensorView b_RM, float factor, TensorView y_NM,
                        device::StreamRef stream);

void replace_zero_rows(ConstTensorView other_RM, TensorView x_RM, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
