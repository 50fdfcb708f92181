// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/rotary.hpp>

#include <Kokkos_Core.hpp>

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
        const auto l = static_cast<float>(low[h]);
        const auto u = static_cast<float>(high[h]);
        low[h] = Element(l * cosine[h] - u * s);
        high[h] = Element(u * cosine[h] + l * s);
      }
    }
  }
};

template <class Element>
void rotate(Heads x, std::int64_t batch, std::int64_t tokens, std::int64_t heads,
            std::int64_t head_dim, ConstTensorView cos_sin_PH, ConstTensorView position_T,
            bool inverse) {
  using Policy =
      Kokkos::RangePolicy<Kokkos::DefaultExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(
      "fourfold::rotary", Policy(0, batch * tokens),
      RotateToken<Element>{static_cast<Element*>(x.data), x.batch_stride, x.token_stride, tokens,
                           heads, head_dim / 2, cos_sin_PH.as<float>(),
                           position_T.as<std::int32_t>(), inverse ? -1.0F : 1.0F});
}

}  // namespace

void rotary(Heads x, std::int64_t batch, std::int64_t tokens, std::int64_t heads,
            std::int64_t head_dim, ConstTensorView cos_sin_PH, ConstTensorView position_T,
            bool inverse, device::StreamRef /*stream*/) {
  FOURFOLD_EXPECT(x.dtype == DType::f32 || x.dtype == DType::bf16);
  FOURFOLD_EXPECT(head_dim % 2 == 0 && cos_sin_PH.dim(1) == head_dim);
  FOURFOLD_EXPECT(position_T.dim(0) == tokens);
  if (x.dtype == DType::bf16) {
    rotate<BFloat16>(x, batch, tokens, heads, head_dim, cos_sin_PH, position_T, inverse);
  } else {
    rotate<float>(x, batch, tokens, heads, head_dim, cos_sin_PH, position_T, inverse);
  }
}

}  // namespace fourfold::kernels
