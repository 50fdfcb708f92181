// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "dropout_mask.hpp"
#include "vectors/storage.hpp"

#include <fourfold/kernels/dropout.hpp>

namespace fourfold::kernels::reference {
namespace {

/// x / (1 - probability) where the mask keeps, else 0.
double masked(const DropoutSite& site, double x, std::int64_t sample, std::int32_t position,
              std::int64_t feature) {
  const bool kept = keeps(dropout_word(site, sample, position, feature), site.probability);
  return kept ? x / (1.0 - site.probability) : 0.0;
}

}  // namespace

void dropout_add(const DropoutSite& site, ConstTensorView x_TD, ConstTensorView residual_TD,
                 ConstTensorView sample_T, ConstTensorView position_T, TensorView y_TD,
                 device::StreamRef /*stream*/) {
  const std::int64_t features = x_TD.dim(1);
  for (std::int64_t t = 0; t < x_TD.dim(0); ++t) {
    for (std::int64_t d = 0; d < features; ++d) {
      const double residual = residual_TD ? read_element(residual_TD, t * features + d) : 0.0;
      const double x = read_element(x_TD, t * features + d);
      write_element(y_TD, t * features + d,
                    residual + masked(site, x, sample_T.as<std::int64_t>()[t],
                                      position_T.as<std::int32_t>()[t], d));
    }
  }
}

void dropout_backward(const DropoutSite& site, ConstTensorView dy_TD, ConstTensorView sample_T,
                      ConstTensorView position_T, TensorView dx_TD, device::StreamRef stream) {
  reference::dropout_add(site, dy_TD, {}, sample_T, position_T, dx_TD, stream);
}

}  // namespace fourfold::kernels::reference
