// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain, serial, obviously right bodies of vocabulary_cross_entropy.hpp, in double: same
/// contracts. Tests compare the fast bodies with them; not for use in a run.
#pragma once

#include <fourfold/kernels/vocabulary_cross_entropy.hpp>

namespace fourfold::kernels::reference {

void cross_entropy_part(ConstTensorView logits_TV, std::int64_t first_column,
                        ConstTensorView target_T, TensorView statistics_T3,
                        device::StreamRef stream);

void cross_entropy_join(ConstTensorView statistics_PT3, ConstTensorView target_T, TensorView loss_T,
                        TensorView normaliser_T2, device::StreamRef stream);

void cross_entropy_part_gradient(TensorView logits_TV, std::int64_t first_column,
                                 ConstTensorView target_T, ConstTensorView normaliser_T2,
                                 float gradient_scale, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
