// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "micro_batch_context.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/activation.hpp>

namespace fourfold::model {

void MicroBatchContext::drop_and_add(std::uint64_t site, ConstTensorView x_RD,
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

void MicroBatchContext::drop_backward(std::uint64_t site, ConstTensorView dy_RD, TensorView dx_RD,
                                      device::StreamRef stream) const {
  FOURFOLD_EXPECT(drops());
  kernels::DropoutSite place = dropout;
  place.site = site;
  kernels::dropout_backward(place, dy_RD, sample_N.rows(residual.begin, residual.count),
                            position_N.rows(residual.begin, residual.count), dx_RD, stream);
}

}  // namespace fourfold::model
