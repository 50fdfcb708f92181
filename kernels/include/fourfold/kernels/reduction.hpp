// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Sums over whole tensors: of f32, bf16 or f16, in f64, written to the device scalar `result`
/// (f64, one element) or added to what it holds. Stream-ordered; the order of summation depends on
/// elements() only, so that wherever `x` lies the bits are the same. No element: 0 is written.
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>

namespace fourfold::kernels {

/// result = sum_i x_i, or result += it.
void sum(ConstTensorView x, TensorView result, bool accumulate, device::StreamRef stream);

/// result = sum_i x_i^2, or result += it.
void sum_of_squares(ConstTensorView x, TensorView result, bool accumulate,
                    device::StreamRef stream);

}  // namespace fourfold::kernels

// Plain, serial, obviously right bodies of reduction.hpp, in double: same contracts, f32 only.
// Tests compare the fast bodies with them; not for use in a run.
namespace fourfold::kernels::reference {

void sum(ConstTensorView x, TensorView result, bool accumulate, device::StreamRef stream);

void sum_of_squares(ConstTensorView x, TensorView result, bool accumulate,
                    device::StreamRef stream);

}  // namespace fourfold::kernels::reference
