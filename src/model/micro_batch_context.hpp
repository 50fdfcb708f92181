// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What one pass of one micro-batch through a stage has in common for all its units.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/contract.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/dropout.hpp>
#include <fourfold/model/batch.hpp>

#include <cstdint>

namespace fourfold::model {

/// The micro-batch is in the stage's own memory: token_N is absent without unit 0, target_N without
/// the head, sample_N without dropout.
struct MicroBatchContext : Batch {
  std::int64_t rows = 0;  ///< N = B * T
  Range residual = {};    ///< which of the rows the residual stream of this rank holds: R
  kernels::DropoutSite dropout = {};  ///< all but the site; probability 0: nothing is dropped
  float gradient_scale = 0;           ///< of the loss, in training
  bool deterministic_attention = true;
  bool drops() const noexcept { return dropout.probability > 0; }

  /// y_RD = residual_RD + dropout(x_RD) at one place of the model; residual may be absent.
  void drop_and_add(std::uint64_t site, ConstTensorView x_RD, ConstTensorView residual_RD,
                    TensorView y_RD, device::StreamRef stream) const;
  /// dx_RD = gradient of dropout at that place. @pre drops()
  void drop_backward(std::uint64_t site, ConstTensorView dy_RD, TensorView dx_RD,
                     device::StreamRef stream) const;
};

inline void MicroBatchContext::drop_and_add(std::uint64_t site, ConstTensorView x_RD,
                                            ConstTensorView residual_RD, TensorView y_RD,
                                            device::StreamRef stream) const {
  if (!drops()) {
    FOURFOLD_EXPECT(residual_RD);
    kernels::add(x_RD, residual_RD, y_RD, stream);
    return;
  }
  kernels::DropoutSite place = dropout;
  place.site = site;
  kernels::dropout_add(place, x_RD, residual_RD, sample_N.rows(residual.begin, residual.count),
                       position_N.rows(residual.begin, residual.count), y_RD, stream);
}

inline void MicroBatchContext::drop_backward(std::uint64_t site, ConstTensorView dy_RD,
                                             TensorView dx_RD, device::StreamRef stream) const {
  FOURFOLD_EXPECT(drops());
  kernels::DropoutSite place = dropout;
  place.site = site;
  kernels::dropout_backward(place, dy_RD, sample_N.rows(residual.begin, residual.count),
                            position_N.rows(residual.begin, residual.count), dx_RD, stream);
}

/// Places of dropout: 2 * layer after attention, one more after the mlp, the embedding after all
/// blocks, so that the numbers do not depend on which stage holds what.
inline std::uint64_t attention_dropout_site(int layer) {
  return 2 * layer;
}
inline std::uint64_t mlp_dropout_site(int layer) {
  return 2 * layer + 1;
}
inline std::uint64_t embedding_dropout_site(std::int64_t layers) {
  return 2 * layers;
}

}  // namespace fourfold::model
