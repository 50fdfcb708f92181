// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain, serial, obviously right bodies of optimizer.hpp, in double: same contracts. Tests compare
/// the fast bodies with them; not for use in a run.
#pragma once

#include <fourfold/kernels/optimizer.hpp>

namespace fourfold::kernels::reference {

void adam(const AdamStep& step, TensorView master, TensorView exp_avg, TensorView exp_avg_sq,
          ConstTensorView gradient, TensorView weight, device::StreamRef stream);

void sgd(const SgdStep& step, TensorView master, TensorView momentum_buffer,
         ConstTensorView gradient, TensorView weight, device::StreamRef stream);

void outer_nesterov(const OuterStep& step, TensorView outer, TensorView velocity, TensorView master,
                    device::StreamRef stream);

}  // namespace fourfold::kernels::reference
