// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What cross_entropy.cpp asks of the kernels for hosts or for devices, with the operands of
/// cross_entropy.hpp.
#pragma once

#include <fourfold/kernels/cross_entropy.hpp>

namespace fourfold::kernels {

/// cross_entropy_forward_backward(), or cross_entropy()
/// @param gradient_TV  logits_TV again, or nullptr
void classify_rows(ConstTensorView logits_TV, void* gradient_TV, ConstTensorView target_T,
                   TensorView loss_T, int vocabulary, float gradient_scale,
                   device::StreamRef stream);

/// cross_entropy_part()
void classify_part_rows(ConstTensorView logits_TV, std::int64_t first_column,
                        ConstTensorView target_T, TensorView statistics_T3,
                        device::StreamRef stream);

/// cross_entropy_part_gradient()
void differentiate_part_rows(TensorView logits_TV, std::int64_t first_column,
                             ConstTensorView target_T, ConstTensorView normaliser_T2,
                             float gradient_scale, device::StreamRef stream);

}  // namespace fourfold::kernels
