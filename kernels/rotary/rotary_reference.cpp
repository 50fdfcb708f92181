// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/storage.hpp"

#include <fourfold/kernels/rotary.hpp>

namespace fourfold::kernels::reference {

void rotary(Heads x, std::int64_t batch, std::int64_t tokens, std::int64_t heads,
            std::int64_t head_dim, ConstTensorView cos_sin_PH, ConstTensorView position_T,
            bool inverse, device::StreamRef /*stream*/) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      const float* cosine = cos_sin_PH.as<float>() + position_T.as<std::int32_t>()[t] * head_dim;
      const float* sine = cosine + half;
      for (std::int64_t n = 0; n < heads; ++n) {
        const std::int64_t first = b * x.batch_stride + t * x.token_stride + n * head_dim;
        for (std::int64_t h = 0; h < half; ++h) {
          const double s = inverse ? -sine[h] : sine[h];
          const double low = read_element(x.data, x.dtype, first + h);
          const double high = read_element(x.data, x.dtype, first + half + h);
          write_element(x.data, x.dtype, first + h, low * cosine[h] - high * s);
          write_element(x.data, x.dtype, first + half + h, high * cosine[h] + low * s);
        }
      }
    }
  }
}

}  // namespace fourfold::kernels::reference
