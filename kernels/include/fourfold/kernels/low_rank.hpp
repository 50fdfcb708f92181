// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A matrix as a product of two thin ones, for gradients on the wire (PowerSGD: Vogels et al.
/// 2019). Legend: N rows and M columns of the matrix, R its rank; both factors lie by columns, each
/// of them a row in memory. f32. Stream-ordered; the order of every sum depends on the sizes only.
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>

namespace fourfold::kernels {

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
