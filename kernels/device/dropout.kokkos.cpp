// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "device/for_each_pack.hpp"
#include "dropout_mask.hpp"

#include <fourfold/kernels/activation.hpp>

namespace fourfold::kernels {
namespace {

constexpr int block_features = 4;  // that share a block of random words

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
  std::int64_t features;       ///< of a row at hand
  std::int64_t first_feature;  ///< logical number of the first of them

  KOKKOS_FORCEINLINE_FUNCTION PhiloxBlock drawn(std::int64_t t, std::int64_t feature) const {
    return philox(key, dropout_counter(position_T[t], feature / block_features),
                  static_cast<std::uint64_t>(sample_T[t]));
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
      const std::int64_t feature = first_feature + d;
      add_kept(drawn(t, feature).word[feature % block_features], x[0], y[0]);
    } else {
      for (int i = 0; i < n; i += block_features) {
        const PhiloxBlock block = drawn(t, first_feature + d + i);
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
  FOURFOLD_EXPECT(site.first_feature >= 0 && site.first_feature + x_TD.dim(1) <= site.features);
  FOURFOLD_EXPECT(!residual_TD || residual_TD.elements() == x_TD.elements());
  FOURFOLD_EXPECT(sample_T.elements() == x_TD.dim(0) && position_T.elements() == x_TD.dim(0));
  with_storage(x_TD.dtype(), [&]<class T>(T) {
    constexpr int n = pack_elements<T>;
    const Dropout<T> body{x_TD.as<T>(),
                          residual_TD ? residual_TD.as<T>() : nullptr,
                          sample_T.as<std::int64_t>(),
                          position_T.as<std::int32_t>(),
                          y_TD.as<T>(),
                          dropout_key(site),
                          dropout_threshold(site.probability),
                          1.0F / (1.0F - site.probability),
                          x_TD.dim(1),
                          site.first_feature};
    const bool aligned = site.first_feature % block_features == 0 &&
                         at_packs<n>(body.x_TD, body.residual_TD, body.y_TD);
    for_each_pack_of_rows<n>(label, x_TD.dim(0), x_TD.dim(1), aligned, stream, body);
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
