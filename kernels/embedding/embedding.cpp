// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "embedding_backend.hpp"
#include "vectors/storage.hpp"

#include <fourfold/kernels/embedding.hpp>

namespace fourfold::kernels {

void embedding(ConstTensorView token_T, ConstTensorView weight_VD, std::int64_t first_row,
               ConstTensorView position_weight_PD, ConstTensorView position_T, TensorView y_TD,
               device::StreamRef stream) {
  const std::int64_t features = weight_VD.dim(1);
  FOURFOLD_EXPECT(y_TD.elements() == token_T.elements() * features);
  FOURFOLD_EXPECT(!position_weight_PD || (position_weight_PD.dim(1) == features &&
                                          position_T.elements() == token_T.elements()));
  with_storage(y_TD.dtype(), [&]<class T>(T) {
    const bool positions = position_weight_PD.data() != nullptr;
    embed_tokens<T>({.token_T = token_T.as<std::int32_t>(),
                     .weight_VD = weight_VD.as<T>(),
                     .first_row = first_row,
                     .rows = weight_VD.dim(0),
                     .position_weight_PD = positions ? position_weight_PD.as<T>() : nullptr,
                     .position_T = positions ? position_T.as<std::int32_t>() : nullptr,
                     .y_TD = y_TD.as<T>(),
                     .tokens = token_T.elements(),
                     .features = features},
                    stream);
  });
}

void embedding_add(ConstTensorView token_T, ConstTensorView weight_VD, std::int64_t first_row,
                   TensorView y_TD, device::StreamRef stream) {
  const std::int64_t features = weight_VD.dim(1);
  FOURFOLD_EXPECT(y_TD.elements() == token_T.elements() * features);
  with_storage(y_TD.dtype(), [&]<class T>(T) {
    add_embeddings<T>({.token_T = token_T.as<std::int32_t>(),
                       .weight_VD = weight_VD.as<T>(),
                       .first_row = first_row,
                       .rows = weight_VD.dim(0),
                       .position_weight_PD = nullptr,
                       .position_T = nullptr,
                       .y_TD = y_TD.as<T>(),
                       .tokens = token_T.elements(),
                       .features = features},
                      stream);
  });
}

void embedding_backward(ConstTensorView token_T, ConstTensorView dy_TD, std::int64_t first_row,
                        TensorView dweight_VD, ConstTensorView position_T,
                        TensorView dposition_weight_PD, device::StreamRef stream) {
  const std::int64_t features = dweight_VD.dim(1);
  FOURFOLD_EXPECT(dy_TD.elements() == token_T.elements() * features);
  FOURFOLD_EXPECT(!dposition_weight_PD || (dposition_weight_PD.dim(1) == features &&
                                           position_T.elements() == token_T.elements()));
  with_storage(dy_TD.dtype(), [&]<class T>(T) {
    const bool positions = dposition_weight_PD.data() != nullptr;
    differentiate_embedding<T>(
        {.token_T = token_T.as<std::int32_t>(),
         .dy_TD = dy_TD.as<T>(),
         .first_row = first_row,
         .rows = dweight_VD.dim(0),
         .dweight_VD = dweight_VD.as<float>(),
         .position_T = positions ? position_T.as<std::int32_t>() : nullptr,
         .positions = positions ? dposition_weight_PD.dim(0) : 0,
         .dposition_weight_PD = positions ? dposition_weight_PD.as<float>() : nullptr,
         .tokens = token_T.elements(),
         .features = features},
        stream);
  });
}

}  // namespace fourfold::kernels
