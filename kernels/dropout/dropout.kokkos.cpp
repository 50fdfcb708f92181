// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "dropout_mask.hpp"
#include "vectors/for_each_pack.hpp"

namespace fourfold::kernels {
namespace {

constexpr int block_features = 4;  // that share a block of random words

/// A row on a host, n of its features on a device.
template <class T>
struct Dropout {
  const T* x_TD;
  const T* residual_TD;  ///< or nullptr
  const std::int64_t* sample_T;
  const std::int32_t* position_T;
  T* y_TD;
  PhiloxKey key;
  std::uint32_t threshold;
  float kept_scale;
  std::int64_t features;

  KOKKOS_FORCEINLINE_FUNCTION PhiloxBlock drawn(std::int64_t t, std::int64_t block) const {
    return philox(key, dropout_counter(position_T[t], block), sample_T[t]);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    constexpr int blocks = 16;
    for (std::int64_t block = 0; 4 * block < features; block += blocks) {
      std::uint32_t word[4 * blocks];
#pragma omp simd
      for (int i = 0; i < blocks; ++i) {
        const PhiloxBlock drawn_block = drawn(t, block + i);
        word[4 * i] = drawn_block.word[0];
        word[4 * i + 1] = drawn_block.word[1];
        word[4 * i + 2] = drawn_block.word[2];
        word[4 * i + 3] = drawn_block.word[3];
      }
      const std::int64_t begin = 4 * block;
      const std::int64_t left = features - begin;
      apply(t * features + begin, left < 4 * blocks ? left : 4 * blocks, word);
    }
  }

  /// y = what `word` keeps of x, scaled, and the residual, for `count` elements from `first` on.
  KOKKOS_FUNCTION void apply(std::int64_t first, std::int64_t count,
                             const std::uint32_t* word) const {
    const T* x = x_TD + first;
    T* y = y_TD + first;
    if (residual_TD == nullptr) {
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) {
        store(y[i], word[i] >= threshold ? to_float(x[i]) * kept_scale : 0.0F);
      }
      return;
    }
    const T* residual = residual_TD + first;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const float kept = word[i] >= threshold ? to_float(x[i]) * kept_scale : 0.0F;
      store(y[i], to_float(residual[i]) + kept);
    }
  }

  /// With n > 1 the features are whole blocks.
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t t, std::int64_t d,
                                              Count<n> /*count*/) const {
    const std::int64_t first = t * features + d;
    float x[n];
    float y[n] = {};
    load<n>(x_TD + first, x);
    if (residual_TD != nullptr) {
      load<n>(residual_TD + first, y);
    }
    if constexpr (n == 1) {
      add_kept(drawn(t, d / block_features).word[d % block_features], x[0], y[0]);
    } else {
      for (int i = 0; i < n; i += block_features) {
        const PhiloxBlock block = drawn(t, (d + i) / block_features);
        for (int k = 0; k < block_features; ++k) {
          add_kept(block.word[k], x[i + k], y[i + k]);
        }
      }
    }
    save<n>(y_TD + first, y);
  }

  KOKKOS_FORCEINLINE_FUNCTION void add_kept(std::uint32_t word, float x, float& y) const {
    const float kept = word >= threshold ? x * kept_scale : 0.0F;
    y = residual_TD == nullptr ? kept : y + kept;
  }
};

void dropout(const char* label, const DropoutSite& site, ConstTensorView x_TD,
             ConstTensorView residual_TD, ConstTensorView sample_T, ConstTensorView position_T,
             TensorView y_TD, device::StreamRef stream) {
  FOURFOLD_EXPECT(site.probability >= 0 && site.probability < 1);
  FOURFOLD_EXPECT(x_TD.shape().rank() == 2 && y_TD.elements() == x_TD.elements());
  FOURFOLD_EXPECT(!residual_TD || residual_TD.elements() == x_TD.elements());
  FOURFOLD_EXPECT(sample_T.elements() == x_TD.dim(0) && position_T.elements() == x_TD.dim(0));
  with_storage(x_TD.dtype(), [&]<class T>(T) {
    constexpr int n = pack_elements<T>;
    const Dropout<T> body{.x_TD = x_TD.as<T>(),
                          .residual_TD = residual_TD ? residual_TD.as<T>() : nullptr,
                          .sample_T = sample_T.as<std::int64_t>(),
                          .position_T = position_T.as<std::int32_t>(),
                          .y_TD = y_TD.as<T>(),
                          .key = dropout_key(site),
                          .threshold = dropout_threshold(site.probability),
                          .kept_scale = 1.0F / (1.0F - site.probability),
                          .features = x_TD.dim(1)};
    const bool aligned = at_packs<n>(body.x_TD, body.residual_TD, body.y_TD);
    for_each_pack_of_rows<n>(label, x_TD.dim(0), body.features, aligned, stream, body);
  });
}

}  // namespace

void dropout_add(const DropoutSite& site, ConstTensorView x_TD, ConstTensorView residual_TD,
                 ConstTensorView sample_T, ConstTensorView position_T, TensorView y_TD,
                 device::StreamRef stream) {
  dropout("dropout_add", site, x_TD, residual_TD, sample_T, position_T, y_TD, stream);
}

void dropout_backward(const DropoutSite& site, ConstTensorView dy_TD, ConstTensorView sample_T,
                      ConstTensorView position_T, TensorView dx_TD, device::StreamRef stream) {
  dropout("dropout_bwd", site, dy_TD, {}, sample_T, position_T, dx_TD, stream);
}

}  // namespace fourfold::kernels
