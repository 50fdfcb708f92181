// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "dropout_mask.hpp"
#include "vectors/storage.hpp"

namespace fourfold::kernels {
namespace {

void dropout(const char* label, const DropoutSite& site, ConstTensorView x_TD,
             ConstTensorView residual_TD, ConstTensorView sample_T, ConstTensorView position_T,
             TensorView y_TD, device::StreamRef stream) {
  FOURFOLD_EXPECT(site.probability >= 0 && site.probability < 1);
  FOURFOLD_EXPECT(x_TD.shape().rank() == 2 && y_TD.elements() == x_TD.elements());
  FOURFOLD_EXPECT(!residual_TD || residual_TD.elements() == x_TD.elements());
  FOURFOLD_EXPECT(sample_T.elements() == x_TD.dim(0) && position_T.elements() == x_TD.dim(0));
  with_storage(x_TD.dtype(), [&]<class T>(T) {
    dropout_rows<T>(label,
                    {.x_TD = x_TD.as<T>(),
                     .residual_TD = residual_TD ? residual_TD.as<T>() : nullptr,
                     .sample_T = sample_T.as<std::int64_t>(),
                     .position_T = position_T.as<std::int32_t>(),
                     .y_TD = y_TD.as<T>(),
                     .key = dropout_key(site),
                     .threshold = dropout_threshold(site.probability),
                     .kept_scale = 1.0F / (1.0F - site.probability),
                     .rows = x_TD.dim(0),
                     .features = x_TD.dim(1)},
                    stream);
  });
}

}  // namespace

void dropout_add(const DropoutSite& site, ConstTensorView x_TD, ConstTensorView residual_TD,
                 ConstTensorView sample_T, ConstTensorView position_T, TensorView y_TD,
                 device::StreamRef stream) {
  dropout("dropout_add", site, x_TD, residual_TD, sample_T, position_T, y_TD, stream);
}

void dropout_backward(const DropoutSite& site, ConstTensorView dy_TD, ConstTensorView sample_T,
                      ConstTensorView position_T, TensorView dx_TD, device::StreamRef stream) {
  dropout("dropout_bwd", site, dy_TD, {}, sample_T, position_T, dx_TD, stream);
}

}  // namespace fourfold::kernels
