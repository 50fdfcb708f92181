// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "lanes.hpp"
#include "launch.hpp"
#include "scratch.hpp"
#include "storage.hpp"

#include <fourfold/kernels/norm.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>

namespace fourfold::kernels {
namespace {

/// Rows whose contributions to a weight gradient are summed together before all such sums are added
/// up in order. Part of the numbers: another value rounds differently.
constexpr std::int64_t rows_per_block = 32;

template <class T>
struct LayerNorm {
  const T* x_TD;
  const T* weight_D;
  const T* bias_D;
  T* y_TD;
  float* mean_T;
  float* rstd_T;
  std::int64_t features;
  float epsilon;

  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const T* x = x_TD + t * features;
    const auto count = static_cast<float>(features);
    const float mean =
        lane_sum(features, 0.0F, [x](std::int64_t d) { return to_float(x[d]); }) / count;
    const float variance = lane_sum(features, 0.0F,
                                    [x, mean](std::int64_t d) {
                                      const float centred = to_float(x[d]) - mean;
                                      return centred * centred;
                                    }) /
                           count;
    const float rstd = 1.0F / std::sqrt(variance + epsilon);
    T* y = y_TD + t * features;
#pragma omp simd
    for (std::int64_t d = 0; d < features; ++d) {
      store(y[d], (to_float(x[d]) - mean) * rstd * to_float(weight_D[d]) + to_float(bias_D[d]));
    }
    mean_T[t] = mean;
    rstd_T[t] = rstd;
  }
};

template <class T>
struct RmsNorm {
  const T* x_TD;
  const T* weight_D;
  T* y_TD;
  float* rstd_T;
  std::int64_t features;
  float epsilon;

  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const T* x = x_TD + t * features;
    const float squares =
        lane_sum(features, 0.0F, [x](std::int64_t d) { return to_float(x[d]) * to_float(x[d]); });
    const float rstd = 1.0F / std::sqrt(squares / static_cast<float>(features) + epsilon);
    T* y = y_TD + t * features;
#pragma omp simd
    for (std::int64_t d = 0; d < features; ++d) {
      store(y[d], to_float(x[d]) * rstd * to_float(weight_D[d]));
    }
    rstd_T[t] = rstd;
  }
};

/// One block of rows of either backward pass: the gradient of each row, and the block's sums for
/// dweight (and, where `centred`, dbias).
template <class T, bool centred>
struct NormBackward {
  const T* dy_TD;
  const T* x_TD;
  const T* weight_D;
  const float* mean_T;
  const float* rstd_T;
  T* dx_TD;
  float* partial_BD;  ///< per block `features` sums for dweight, then as many for dbias
  std::int64_t rows;
  std::int64_t features;

  static constexpr std::int64_t sums = centred ? 2 : 1;

  KOKKOS_FUNCTION void operator()(std::int64_t block) const {
    float* dweight = partial_BD + block * sums * features;
    for (std::int64_t i = 0; i < sums * features; ++i) {
      dweight[i] = 0;
    }
    const std::int64_t begin = block * rows_per_block;
    const std::int64_t end = begin + rows_per_block < rows ? begin + rows_per_block : rows;
    for (std::int64_t t = begin; t < end; ++t) {
      add_row(t, dweight, dweight + features);
    }
  }

  KOKKOS_FUNCTION void add_row(std::int64_t t, float* dweight, float* dbias) const {
    const T* dy = dy_TD + t * features;
    const T* x = x_TD + t * features;
    T* dx = dx_TD + t * features;
    const float mean = centred ? mean_T[t] : 0.0F;
    const float rstd = rstd_T[t];
    const auto count = static_cast<float>(features);
    const Sums row = sum_row(dy, x, mean);
    const float mean_g = centred ? row.g / count : 0.0F;
    const float mean_g_xhat = row.g_centred * rstd / count;
#pragma omp simd
    for (std::int64_t d = 0; d < features; ++d) {
      const float dy_d = to_float(dy[d]);
      const float xhat = (to_float(x[d]) - mean) * rstd;
      const float g = dy_d * to_float(weight_D[d]);
      store(dx[d], to_float(dx[d]) + rstd * (g - mean_g - xhat * mean_g_xhat));
      dweight[d] += dy_d * xhat;
      if constexpr (centred) {
        dbias[d] += dy_d;
      }
    }
  }

  struct Sums {
    float g = 0;          ///< of dy * weight
    float g_centred = 0;  ///< of dy * weight * (x - mean)
  };

  KOKKOS_FORCEINLINE_FUNCTION Sums sum_row(const T* dy, const T* x, float mean) const {
    float g_lane[lanes] = {};
    float g_centred_lane[lanes] = {};
    const auto add = [&](std::int64_t d, int lane) {
      const float g = to_float(dy[d]) * to_float(weight_D[d]);
      g_lane[lane] += g;
      g_centred_lane[lane] += g * (to_float(x[d]) - mean);
    };
    std::int64_t d = 0;
    for (; d + lanes <= features; d += lanes) {
      for (int lane = 0; lane < lanes; ++lane) {
        add(d + lane, lane);
      }
    }
    for (int lane = 0; d + lane < features; ++lane) {
      add(d + lane, lane);
    }
    const auto plus = [](float a, float b) { return a + b; };
    return {fold_lanes(g_lane, plus), fold_lanes(g_centred_lane, plus)};
  }
};

/// target[column] += sum over blocks of partial[block][column], in order.
struct AddBlocks {
  const float* partial;
  float* target;
  std::int64_t blocks;
  std::int64_t stride;
  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    constexpr std::int64_t width = 64;
    for (std::int64_t first = begin; first < end; first += width) {
      const std::int64_t count = end - first < width ? end - first : width;
      float sum[width] = {};
      for (std::int64_t block = 0; block < blocks; ++block) {
        const float* from = partial + block * stride + first;
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i) {
          sum[i] += from[i];
        }
      }
      for (std::int64_t i = 0; i < count; ++i) {
        target[first + i] += sum[i];
      }
    }
  }
};

template <class T, bool centred>
void norm_backward(const char* label, ConstTensorView dy_TD, ConstTensorView x_TD,
                   ConstTensorView weight_D, const float* mean_T, const float* rstd_T,
                   TensorView dx_TD, float* dweight_D, float* dbias_D, device::StreamRef stream) {
  const std::int64_t rows = x_TD.dim(0);
  const std::int64_t features = x_TD.dim(1);
  const std::int64_t blocks = (rows + rows_per_block - 1) / rows_per_block;
  const std::int64_t stride = NormBackward<T, centred>::sums * features;
  auto* partial = static_cast<float*>(
      scratch(static_cast<std::size_t>(blocks * stride) * sizeof(float), stream));
  for_each(label, blocks, stream,
           NormBackward<T, centred>{dy_TD.as<T>(), x_TD.as<T>(), weight_D.as<T>(), mean_T, rstd_T,
                                    dx_TD.as<T>(), partial, rows, features});
  for_each_block("norm_dweight", features, stream, AddBlocks{partial, dweight_D, blocks, stride});
  if constexpr (centred) {
    for_each_block("norm_dbias", features, stream,
                   AddBlocks{partial + features, dbias_D, blocks, stride});
  }
}

/// What all four have in common.
void expect_rows(ConstTensorView x_TD, ConstTensorView weight_D, ConstTensorView rstd_T) {
  FOURFOLD_EXPECT(x_TD.shape().rank() == 2);
  FOURFOLD_EXPECT(weight_D.elements() == x_TD.dim(1) && weight_D.dtype() == x_TD.dtype());
  FOURFOLD_EXPECT(rstd_T.elements() == x_TD.dim(0));
}

}  // namespace

void layer_norm(ConstTensorView x_TD, ConstTensorView weight_D, ConstTensorView bias_D,
                TensorView y_TD, TensorView mean_T, TensorView rstd_T, float epsilon,
                device::StreamRef stream) {
  expect_rows(x_TD, weight_D, rstd_T);
  FOURFOLD_EXPECT(y_TD.shape() == x_TD.shape() && bias_D.elements() == x_TD.dim(1));
  FOURFOLD_EXPECT(mean_T.elements() == x_TD.dim(0));
  with_storage(x_TD.dtype(), [&]<class T>(T) {
    for_each("layer_norm", x_TD.dim(0), stream,
             LayerNorm<T>{x_TD.as<T>(), weight_D.as<T>(), bias_D.as<T>(), y_TD.as<T>(),
                          mean_T.as<float>(), rstd_T.as<float>(), x_TD.dim(1), epsilon});
  });
}

void layer_norm_backward(ConstTensorView dy_TD, ConstTensorView x_TD, ConstTensorView weight_D,
                         ConstTensorView mean_T, ConstTensorView rstd_T, TensorView dx_TD,
                         TensorView dweight_D, TensorView dbias_D, device::StreamRef stream) {
  expect_rows(x_TD, weight_D, rstd_T);
  FOURFOLD_EXPECT(dy_TD.shape() == x_TD.shape() && dx_TD.shape() == x_TD.shape());
  FOURFOLD_EXPECT(mean_T.elements() == x_TD.dim(0));
  FOURFOLD_EXPECT(dweight_D.elements() == x_TD.dim(1) && dbias_D.elements() == x_TD.dim(1));
  with_storage(x_TD.dtype(), [&]<class T>(T) {
    norm_backward<T, true>("layer_norm_bwd", dy_TD, x_TD, weight_D, mean_T.as<float>(),
                           rstd_T.as<float>(), dx_TD, dweight_D.as<float>(), dbias_D.as<float>(),
                           stream);
  });
}

void rms_norm(ConstTensorView x_TD, ConstTensorView weight_D, TensorView y_TD, TensorView rstd_T,
              float epsilon, device::StreamRef stream) {
  expect_rows(x_TD, weight_D, rstd_T);
  FOURFOLD_EXPECT(y_TD.shape() == x_TD.shape());
  with_storage(x_TD.dtype(), [&]<class T>(T) {
    for_each("rms_norm", x_TD.dim(0), stream,
             RmsNorm<T>{x_TD.as<T>(), weight_D.as<T>(), y_TD.as<T>(), rstd_T.as<float>(),
                        x_TD.dim(1), epsilon});
  });
}

void rms_norm_backward(ConstTensorView dy_TD, ConstTensorView x_TD, ConstTensorView weight_D,
                       ConstTensorView rstd_T, TensorView dx_TD, TensorView dweight_D,
                       device::StreamRef stream) {
  expect_rows(x_TD, weight_D, rstd_T);
  FOURFOLD_EXPECT(dy_TD.shape() == x_TD.shape() && dx_TD.shape() == x_TD.shape());
  FOURFOLD_EXPECT(dweight_D.elements() == x_TD.dim(1));
  with_storage(x_TD.dtype(), [&]<class T>(T) {
    norm_backward<T, false>("rms_norm_bwd", dy_TD, x_TD, weight_D, nullptr, rstd_T.as<float>(),
                            dx_TD, dweight_D.as<float>(), nullptr, stream);
  });
}

}  // namespace fourfold::kernels
