// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Cross-entropy of logits: of whole rows, and of rows whose columns lie on several ranks. Legend:
/// T tokens, V columns, P parts (ranks).
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

// Columns on several ranks: three parts with one small exchange between the first two, so that no
// rank ever sees the whole row. V: columns held here, [first_column, first_column + V) of the
// vocabulary.

/// What a part knows of each row: f32 [T, 3], largest logit m (lowest float without columns),
/// sum of exp(logit - m), the target's logit (0 when it is not here).
inline constexpr std::int64_t part_statistics = 3;

/// Writes the statistics of this part. f32, bf16 or f16 logits, f32 arithmetic. V may be 0.
/// @param target_T  i32, columns of the whole vocabulary or ignored_target
void cross_entropy_part(ConstTensorView logits_TV, std::int64_t first_column,
                        ConstTensorView target_T, TensorView statistics_T3,
                        device::StreamRef stream);

/// Joins the statistics of all parts, in the order of parts, so that all ranks get the same bits.
/// @param statistics_PT3  f32, those of part 0 first
/// @param loss_T          f32: log of the sum over all columns minus the target's logit; 0 for
///                        ignored targets
/// @param normaliser_T2   f32: largest logit of the whole row, 1 / sum of exp(logit - largest); 0
///                        and 0 for ignored targets
/// @pre each target is a column of exactly one part
void cross_entropy_join(ConstTensorView statistics_PT3, ConstTensorView target_T, TensorView loss_T,
                        TensorView normaliser_T2, device::StreamRef stream);

/// Replaces this part's logits by gradient_scale * (softmax - one_hot); rows of ignored targets by
/// zeros.
void cross_entropy_part_gradient(TensorView logits_TV, std::int64_t first_column,
                                 ConstTensorView target_T, ConstTensorView normaliser_T2,
                                 float gradient_scale, device::StreamRef stream);

}  // namespace fourfold::kernels

// The references of all these: plain, serial, obviously right, in double; same contracts. Tests
// compare the fast kernels with them; not for use in a run.
namespace fourfold::kernels::reference {

void cross_entropy_part(ConstTensorView logits_TV, std::int64_t first_column,
                        ConstTensorView target_T, TensorView statistics_T3,
                        device::StreamRef stream);

void cross_entropy_join(ConstTensorView statistics_PT3, ConstTensorView target_T, TensorView loss_T,
                        TensorView normaliser_T2, device::StreamRef stream);

void cross_entropy_part_gradient(TensorView logits_TV, std::int64_t first_column,
                                 ConstTensorView target_T, ConstTensorView normaliser_T2,
                                 float gradient_scale, device::StreamRef stream);

void cross_entropy_forward_backward(TensorView logits_TV, ConstTensorView target_T,
                                    TensorView loss_T, std::int64_t vocabulary,
                                    float gradient_scale, device::StreamRef stream);

void cross_entropy(ConstTensorView logits_TV, ConstTensorView target_T, TensorView loss_T,
                   std::int64_t vocabulary, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
