// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/for_each_pack.hpp"

#include <fourfold/kernels/rotary.hpp>

namespace fourfold::kernels {
namespace {

/// Turns all heads of one token on a host; on a device n pairs of features of one head, where `row`
/// counts heads, of tokens, of sequences.
template <class T>
struct Rotate {
  T* x;
  std::int64_t batch_stride;
  std::int64_t token_stride;
  std::int64_t half;  ///< of a head's features
  const float* cos_sin_PH;
  const std::int32_t* position_T;
  float direction;  ///< -1 turns back
  Divisor tokens;
  Divisor heads;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t sequence = tokens.quotient(index);
    const std::int64_t t = index - sequence * tokens.value();
    T* row = x + sequence * batch_stride + t * token_stride;
    const float* cosine = cos_sin_PH + position_T[t] * 2 * half;
    const float* sine = cosine + half;
    for (std::int64_t n = 0; n < heads.value(); ++n) {
      T* low = row + n * 2 * half;
      T* high = low + half;
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

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t row, std::int64_t h,
                                              Count<n> /*count*/) const {
    const std::int64_t token = heads.quotient(row);
    const std::int64_t sequence = tokens.quotient(token);
    const std::int64_t t = token - sequence * tokens.value();
    T* const low = x + sequence * batch_stride + t * token_stride +
                   (row - token * heads.value()) * 2 * half + h;
    const float* const table = cos_sin_PH + position_T[t] * 2 * half + h;
    float cosine[n];
    float sine[n];
    float l[n];
    float u[n];
    load<n>(table, cosine);
    load<n>(table + half, sine);
    load<n>(low, l);
    load<n>(low + half, u);
    for (int i = 0; i < n; ++i) {
      const float s = direction * sine[i];
      const float turned = l[i] * cosine[i] - u[i] * s;
      u[i] = u[i] * cosine[i] + l[i] * s;
      l[i] = turned;
    }
    save<n>(low, l);
    save<n>(low + half, u);
  }
};

}  // namespace

void rotary(Heads x, std::int64_t batch, std::int64_t tokens, std::int64_t heads,
            std::int64_t head_dim, ConstTensorView cos_sin_PH, ConstTensorView position_T,
            bool inverse, device::StreamRef stream) {
  FOURFOLD_EXPECT(head_dim % 2 == 0 && cos_sin_PH.dim(1) == head_dim);
  FOURFOLD_EXPECT(position_T.dim(0) == tokens);
  if (batch * tokens * heads == 0) {
    return;
  }
  with_storage(x.dtype, [&]<class T>(T) {
    constexpr int n = pack_elements<T>;
    const Rotate<T> body{.x = x.as<T>(),
                         .batch_stride = x.batch_stride,
                         .token_stride = x.token_stride,
                         .half = head_dim / 2,
                         .cos_sin_PH = cos_sin_PH.as<float>(),
                         .position_T = position_T.as<std::int32_t>(),
                         .direction = inverse ? -1.0F : 1.0F,
                         .tokens = Divisor(tokens),
                         .heads = Divisor(heads)};
    const bool aligned = x.batch_stride % n == 0 && x.token_stride % n == 0 &&
                         at_packs<n>(body.x) && at_packs<n>(body.cos_sin_PH);
    const std::int64_t rows = batch * tokens * (is_for_device ? heads : 1);
    for_each_pack_of_rows<n>("rotary", rows, body.half, aligned, stream, body);
  });
}

}  // namespace fourfold::kernels
