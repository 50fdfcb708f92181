// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "dropout_mask.hpp"
#include "vectors/for_each_pack.hpp"

namespace fourfold::kernels {
namespace {

constexpr int block_features = 4;  // that share a block of random words

template <class T>
struct Dropout {
  DropoutOperands<T> with;

  KOKKOS_FORCEINLINE_FUNCTION PhiloxBlock drawn(std::int64_t t, std::int64_t feature) const {
    return philox(with.key, dropout_counter(with.position_T[t], feature / block_features),
                  with.sample_T[t]);
  }

  /// With n > 1 the features are whole blocks.
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t t, std::int64_t d,
                                              Count<n> /*count*/) const {
    const std::int64_t first = t * with.features + d;
    float x[n];
    float y[n] = {};
    load<n>(with.x_TD + first, x);
    if (with.residual_TD != nullptr) {
      load<n>(with.residual_TD + first, y);
    }
    if constexpr (n == 1) {
      add_kept(drawn(t, d).word[d % block_features], x[0], y[0]);
    } else {
      for (int i = 0; i < n; i += block_features) {
        const PhiloxBlock block = drawn(t, d + i);
        for (int k = 0; k < block_features; ++k) {
          add_kept(block.word[k], x[i + k], y[i + k]);
        }
      }
    }
    save<n>(with.y_TD + first, y);
  }

  KOKKOS_FORCEINLINE_FUNCTION void add_kept(std::uint32_t word, float x, float& y) const {
    const float kept = word >= with.threshold ? x * with.kept_scale : 0.0F;
    y = with.residual_TD == nullptr ? kept : y + kept;
  }
};

}  // namespace

template <class T>
void dropout_rows(const char* label, const DropoutOperands<T>& with, device::StreamRef stream) {
  constexpr int n = pack_elements<T>;
  const bool aligned = at_packs<n>(with.x_TD, with.residual_TD, with.y_TD);
  for_each_pack_of_rows<n>(label, with.rows, with.features, aligned, stream, Dropout<T>{with});
}
template void dropout_rows(const char*, const DropoutOperands<float>&, device::StreamRef);
template void dropout_rows(const char*, const DropoutOperands<BFloat16>&, device::StreamRef);
template void dropout_rows(const char*, const DropoutOperands<Float16>&, device::StreamRef);

}  // namespace fourfold::kernels
