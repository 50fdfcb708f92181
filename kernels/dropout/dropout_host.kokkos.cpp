// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "dropout_mask.hpp"
#include "runtime/launch.hpp"
#include "vectors/storage.hpp"

#include <Kokkos_Core.hpp>

namespace fourfold::kernels {
namespace {

/// y = what `word` keeps of x, scaled, and the residual, for `count` elements from `first` on.
template <class T>
void apply(const DropoutOperands<T>& with, std::int64_t first, std::int64_t count,
           const std::uint32_t* word) {
  const T* x = with.x_TD + first;
  T* y = with.y_TD + first;
  if (with.residual_TD == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      store(y[i], word[i] >= with.threshold ? to_float(x[i]) * with.kept_scale : 0.0F);
    }
    return;
  }
  const T* residual = with.residual_TD + first;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float kept = word[i] >= with.threshold ? to_float(x[i]) * with.kept_scale : 0.0F;
    store(y[i], to_float(residual[i]) + kept);
  }
}

}  // namespace

template <class T>
void dropout_rows(const char* label, const DropoutOperands<T>& with, device::StreamRef stream) {
  for_each(label, with.rows, stream, [with](std::int64_t t) {
    constexpr int blocks = 16;
    for (std::int64_t block = 0; 4 * block < with.features; block += blocks) {
      std::uint32_t word[4 * blocks];
#pragma omp simd
      for (int i = 0; i < blocks; ++i) {
        const PhiloxBlock drawn =
            philox(with.key, dropout_counter(with.position_T[t], block + i), with.sample_T[t]);
        word[4 * i] = drawn.word[0];
        word[4 * i + 1] = drawn.word[1];
        word[4 * i + 2] = drawn.word[2];
        word[4 * i + 3] = drawn.word[3];
      }
      const std::int64_t begin = 4 * block;
      const std::int64_t left = with.features - begin;
      apply(with, t * with.features + begin, left < 4 * blocks ? left : 4 * blocks, word);
    }
  });
}
template void dropout_rows(const char*, const DropoutOperands<float>&, device::StreamRef);
template void dropout_rows(const char*, const DropoutOperands<BFloat16>&, device::StreamRef);
template void dropout_rows(const char*, const DropoutOperands<Float16>&, device::StreamRef);

}  // namespace fourfold::kernels
