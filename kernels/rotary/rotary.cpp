// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "rotary_backend.hpp"
#include "vectors/storage.hpp"

#include <fourfold/kernels/rotary.hpp>

namespace fourfold::kernels {

void rotary(Heads x, std::int64_t batch, std::int64_t tokens, std::int64_t heads,
            std::int64_t head_dim, ConstTensorView cos_sin_PH, ConstTensorView position_T,
            bool inverse, device::StreamRef stream) {
  FOURFOLD_EXPECT(head_dim % 2 == 0 && cos_sin_PH.dim(1) == head_dim);
  FOURFOLD_EXPECT(position_T.dim(0) == tokens);
  if (batch * tokens * heads == 0) {
    return;
  }
  with_storage(x.dtype, [&]<class T>(T) {
    rotate_heads<T>({.x = x.as<T>(),
                     .batch_stride = x.batch_stride,
                     .token_stride = x.token_stride,
                     .batch = batch,
                     .tokens = tokens,
                     .heads = heads,
                     .half = head_dim / 2,
                     .cos_sin_PH = cos_sin_PH.as<float>(),
                     .position_T = position_T.as<std::int32_t>(),
                     .direction = inverse ? -1.0F : 1.0F},
                    stream);
  });
}

}  // namespace fourfold::kernels
