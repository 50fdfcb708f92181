// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// Targets with this value count for nothing: no loss, zero gradient.
inline constexpr std::int32_t ignored_target = -100;

/// loss_t = -log softmax(logits_t)[target_t]; the logits are replaced by gradient_scale * (softmax
/// - one_hot) in the same pass. Legend: T tokens, V vocabulary. f32, bf16 or f16 logits, f32
/// arithmetic. Columns from vocabulary on (padding) take no part and get gradient zero.
/// @param target_T  i32, in [0, vocabulary) or ignored_target
/// @param loss_T    f32, 0 for ignored targets
void cross_entropy_forward_backward(TensorView logits_TV, ConstTensorView target_T,
                                    TensorView loss_T, std::int64_t vocabulary,
                                    float gradient_scale, device::StreamRef stream);

/// The loss alone; logits stay as they are. For evaluation.
void cross_entropy(ConstTensorView logits_TV, ConstTensorView target_T, TensorView loss_T,
                   std::int64_t vocabulary, device::StreamRef stream);

}  // namespace fourfold::kernels
