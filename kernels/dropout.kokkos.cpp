// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "dropout_mask.hpp"
#include "launch.hpp"
#include "storage.hpp"

#include <fourfold/kernels/activation.hpp>

#include <Kokkos_Core.hpp>

namespace fourfold::kernels {
namespace {

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

  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    constexpr int blocks = 16;
    const std::int64_t last_feature = first_feature + features;
    for (std::int64_t block = first_feature / 4; 4 * block < last_feature; block += blocks) {
      std::uint32_t word[4 * blocks];
#pragma omp simd
      for (int i = 0; i < blocks; ++i) {
        const PhiloxBlock drawn = philox(key, dropout_counter(position_T[t], block + i),
                                         static_cast<std::uint64_t>(sample_T[t]));
        word[4 * i] = drawn.word[0];
        word[4 * i + 1] = drawn.word[1];
        word[4 * i + 2] = drawn.word[2];
        word[4 * i + 3] = drawn.word[3];
      }
      const std::int64_t begin = 4 * block < first_feature ? first_feature : 4 * block;
      const std::int64_t end =
          4 * (block + blocks) < last_feature ? 4 * (block + blocks) : last_feature;
      apply(t * features + begin - first_feature, end - begin, word + (begin - 4 * block));
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void apply(std::int64_t first, std::int64_t count,
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
    for_each(label, x_TD.dim(0), stream,
             Dropout<T>{x_TD.as<T>(), residual_TD ? residual_TD.as<T>() : nullptr,
                        sample_T.as<std::int64_t>(), position_T.as<std::int32_t>(), y_TD.as<T>(),
                        dropout_key(site), dropout_threshold(site.probability),
                        1.0F / (1.0F - site.probability), x_TD.dim(1), site.first_feature});
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
