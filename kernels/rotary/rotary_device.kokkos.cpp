// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "rotary_backend.hpp"
#include "vectors/for_each_pack.hpp"

namespace fourfold::kernels {
namespace {

/// Turns n pairs of features of one head of one token; `row` counts heads, of tokens, of sequences.
template <class T>
struct Rotate {
  RotaryOperands<T> with;
  Divisor tokens;
  Divisor heads;

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t row, std::int64_t h,
                                              Count<n> /*count*/) const {
    const std::int64_t token = heads.quotient(row);
    const std::int64_t sequence = tokens.quotient(token);
    const std::int64_t t = token - sequence * tokens.value();
    T* const low = with.x + sequence * with.batch_stride + t * with.token_stride +
                   (row - token * heads.value()) * 2 * with.half + h;
    const float* const table = with.cos_sin_PH + with.position_T[t] * 2 * with.half + h;
    float cosine[n];
    float sine[n];
    float l[n];
    float u[n];
    load<n>(table, cosine);
    load<n>(table + with.half, sine);
    load<n>(low, l);
    load<n>(low + with.half, u);
    for (int i = 0; i < n; ++i) {
      const float s = with.direction * sine[i];
      const float turned = l[i] * cosine[i] - u[i] * s;
      u[i] = u[i] * cosine[i] + l[i] * s;
      l[i] = turned;
    }
    save<n>(low, l);
    save<n>(low + with.half, u);
  }
};

}  // namespace

template <class T>
void rotate_heads(const RotaryOperands<T>& with, device::StreamRef stream) {
  constexpr int n = pack_elements<T>;
  const bool aligned = with.batch_stride % n == 0 && with.token_stride % n == 0 &&
                       at_packs<n>(with.x) && at_packs<n>(with.cos_sin_PH);
  for_each_pack_of_rows<n>("rotary", with.batch * with.tokens * with.heads, with.half, aligned,
                           stream, Rotate<T>{with, Divisor(with.tokens), Divisor(with.heads)});
}
template void rotate_heads(const RotaryOperands<float>&, device::StreamRef);
template void rotate_heads(const RotaryOperands<BFloat16>&, device::StreamRef);
template void rotate_heads(const RotaryOperands<Float16>&, device::StreamRef);

}  // namespace fourfold::kernels
