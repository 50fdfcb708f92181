// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain, serial, obviously right bodies of cross_entropy.hpp, in double: same contracts. Tests
/// compare the fast bodies with them; not for use in a run.
#pragma once

#include <fourfold/kernels/cross_entropy.hpp>

namespace fourfold::kernels::reference {

void cross_entropy_forward_backward(TensorView logits_TV, ConstTensorView target_T,
                                    TensorView loss_T, std::int64_t vocabulary,
                                    float gradient_scale, device::StreamRef stream);

void cross_entropy(ConstTensorView logits_TV, ConstTensorView target_T, TensorView loss_T,
                   std::int64_t vocabulary, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
