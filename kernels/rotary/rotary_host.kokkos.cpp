// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "rotary_backend.hpp"
#include "runtime/launch.hpp"
#include "vectors/storage.hpp"

namespace fourfold::kernels {

template <class T>
void rotate_heads(const RotaryOperands<T>& with, device::StreamRef stream) {
  // All heads of one token.
  for_each("fourfold::rotary", with.batch * with.tokens, stream, [with](std::int64_t index) {
    const std::int64_t t = index % with.tokens;
    T* row = with.x + index / with.tokens * with.batch_stride + t * with.token_stride;
    const float* cosine = with.cos_sin_PH + with.position_T[t] * 2 * with.half;
    const float* sine = cosine + with.half;
    for (std::int64_t n = 0; n < with.heads; ++n) {
      T* low = row + n * 2 * with.half;
      T* high = low + with.half;
#pragma omp simd
      for (std::int64_t h = 0; h < with.half; ++h) {
        const float s = with.direction * sine[h];
        const float l = to_float(low[h]);
        const float u = to_float(high[h]);
        store(low[h], l * cosine[h] - u * s);
        store(high[h], u * cosine[h] + l * s);
      }
    }
  });
}
template void rotate_heads(const RotaryOperands<float>&, device::StreamRef);
template void rotate_heads(const RotaryOperands<BFloat16>&, device::StreamRef);
template void rotate_heads(const RotaryOperands<Float16>&, device::StreamRef);

}  // namespace fourfold::kernels
