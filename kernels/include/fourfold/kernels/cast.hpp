// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/operands.hpp>

namespace fourfold::kernels {

/// target = source converted between f32, bf16 and f16 (round to nearest even); the same dtype
/// copies.
/// @pre source.elements() == target.elements(); no overlap
void cast(ConstTensorView source, TensorView target, device::StreamRef stream,
          MemorySpace place = MemorySpace::device);

/// out = x + factor * y. f32; out may be the memory of x or of y.
void add_scaled(ConstTensorView x, float factor, ConstTensorView y, TensorView out,
                device::StreamRef stream);

}  // namespace fourfold::kernels

// Plain, serial, obviously right bodies of cast.hpp, in double: same contracts. Tests compare the
// fast bodies with them; not for use in a run.
namespace fourfold::kernels::reference {

void cast(ConstTensorView source, TensorView target, device::StreamRef stream);

void add_scaled(ConstTensorView x, float factor, ConstTensorView y, TensorView out,
                device::StreamRef stream);

}  // namespace fourfold::kernels::reference
