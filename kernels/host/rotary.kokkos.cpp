// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"
#include "storage.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/rotary.hpp>

namespace fourfold::kernels {
namespace {

/// Turns all heads of one token.
template <class Element>
struct RotateToken {
  Element* x;
  std::int64_t batch_stride;
  std::int64_t token_stride;
  std::int64_t tokens;
  std::int64_t heads;
  std::int64_t half;
  const float* cos_sin_PH;
  const std::int32_t* position_T;
  float direction;  // -1 turns back

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t t = index % tokens;
    Element* row = x + index / tokens * batch_stride + t * token_stride;
    const float* cosine = cos_sin_PH + position_T[t] * 2 * half;
    const float* sine = cosine + half;
    for (std::int64_t n = 0; n < heads; ++n) {
      Element* low = row + n * 2 * half;
      Element* high = low + half;
#pragma omp simd
      for (std::int64_t h = 0; h < half; ++h) {
        const float s = direction * sine[h];
        const float l = to_float(low[h]);
        const float u = to_float(high[h]);
        store(low[h], l * cosine[h] - u * s);
        store(high[h], u * cosine[h] + l * s);
      }
    }
  }
};

}  // namespace

void rotary(Heads x, std::int64_t batch, std::int64_t tokens, std::int64_t heads,
            std::int64_t head_dim, ConstTensorView cos_sin_PH, ConstTensorView position_T,
            bool inverse, device::StreamRef stream) {
  FOURFOLD_EXPECT(head_dim % 2 == 0 && cos_sin_PH.dim(1) == head_dim);
  FOURFOLD_EXPECT(position_T.dim(0) == tokens);
  with_storage(x.dtype, [&](auto element) {
    using Element = decltype(element);
    for_each("fourfold::rotary", batch * tokens, stream,
             RotateToken<Element>{static_cast<Element*>(x.data), x.batch_stride, x.token_stride,
                                  tokens, heads, head_dim / 2, cos_sin_PH.as<float>(),
                                  position_T.as<std::int32_t>(), inverse ? -1.0F : 1.0F});
  });
}

}  // namespace fourfold::kernels
