// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Dropout. f32, bf16 or f16 storage, computed in f32. Legend: T rows, D features, all of a row.
/// Stream-ordered; bit-identical from run to run, for any number of threads.
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// Where the rows of an activation stand in the logical run, so that random masks do not depend on
/// the mesh.
struct DropoutSite {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  /// distinct for each place of the model: 2 * layer + {0 attention, 1 mlp}, or the embedding
  std::uint64_t site = 0;
  float probability = 0;  ///< of dropping; kept elements are scaled by 1 / (1 - probability)
};

/// y = residual + dropout(x), with a mask that is a pure function of (seed, step, site, sample,
/// position, feature). The backward pass draws the mask again; nothing is stored.
/// @param sample_T    i64, global sample number of each row
/// @param position_T  i32, position of each row in its sequence
/// @param residual_TD absent for none; y_TD may be x_TD or residual_TD
void dropout_add(const DropoutSite& site, ConstTensorView x_TD, ConstTensorView residual_TD,
                 ConstTensorView sample_T, ConstTensorView position_T, TensorView y_TD,
                 device::StreamRef stream);
/// dx = mask * dy / (1 - probability). dx may be dy.
void dropout_backward(const DropoutSite& site, ConstTensorView dy_TD, ConstTensorView sample_T,
                      ConstTensorView position_T, TensorView dx_TD, device::StreamRef stream);

}  // namespace fourfold::kernels

// Plain, serial, obviously right bodies of dropout.hpp, in double: same contracts. Tests compare
// the fast bodies with them; not for use in a run.
namespace fourfold::kernels::reference {

void dropout_add(const DropoutSite& site, ConstTensorView x_TD, ConstTensorView residual_TD,
                 ConstTensorView sample_T, ConstTensorView position_T, TensorView y_TD,
                 device::StreamRef stream);

void dropout_backward(const DropoutSite& site, ConstTensorView dy_TD, ConstTensorView sample_T,
                      ConstTensorView position_T, TensorView dx_TD, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
