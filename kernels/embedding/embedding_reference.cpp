// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/storage.hpp"

#include <fourfold/kernels/embedding.hpp>

namespace fourfold::kernels::reference {

void embedding(ConstTensorView token_T, ConstTensorView weight_VD, std::int64_t first_row,
               ConstTensorView position_weight_PD, ConstTensorView position_T, TensorView y_TD,
               device::StreamRef /*stream*/) {
  const std::int64_t features = weight_VD.dim(1);
  for (std::int64_t t = 0; t < token_T.elements(); ++t) {
    const std::int64_t row = token_T.as<std::int32_t>()[t] - first_row;
    const bool at_hand = row >= 0 && row < weight_VD.dim(0);
    for (std::int64_t d = 0; d < features; ++d) {
      double value = 0;
      if (at_hand) {
        value += read_element(weight_VD, row * features + d);
      }
      if (position_weight_PD) {
        const std::int64_t position = position_T.as<std::int32_t>()[t];
        value += read_element(position_weight_PD, position * features + d);
      }
      write_element(y_TD, t * features + d, value);
    }
  }
}

void embedding_add(ConstTensorView token_T, ConstTensorView weight_VD, std::int64_t first_row,
                   TensorView y_TD, device::StreamRef /*stream*/) {
  const std::int64_t features = weight_VD.dim(1);
  for (std::int64_t t = 0; t < token_T.elements(); ++t) {
    const std::int64_t row = token_T.as<std::int32_t>()[t] - first_row;
    for (std::int64_t d = 0; 0 <= row && row < weight_VD.dim(0) && d < features; ++d) {
      const double sum =
          read_element(y_TD, t * features + d) + read_element(weight_VD, row * features + d);
      write_element(y_TD, t * features + d, sum);
    }
  }
}

void embedding_backward(ConstTensorView token_T, ConstTensorView dy_TD, std::int64_t first_row,
                        TensorView dweight_VD, ConstTensorView position_T,
                        TensorView dposition_weight_PD, device::StreamRef /*stream*/) {
  const std::int64_t features = dweight_VD.dim(1);
  for (std::int64_t t = 0; t < token_T.elements(); ++t) {
    const std::int64_t row = token_T.as<std::int32_t>()[t] - first_row;
    const bool at_hand = row >= 0 && row < dweight_VD.dim(0);
    for (std::int64_t d = 0; d < features; ++d) {
      const auto dy = static_cast<float>(read_element(dy_TD, t * features + d));
      if (at_hand) {
        dweight_VD.as<float>()[row * features + d] += dy;
      }
      if (dposition_weight_PD) {
        const std::int64_t position = position_T.as<std::int32_t>()[t];
        dposition_weight_PD.as<float>()[position * features + d] += dy;
      }
    }
  }
}

}  // namespace fourfold::kernels::reference
