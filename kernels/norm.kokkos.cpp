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

/// Prefetches row t + 1 chunk by chunk, given row t.
template <class... T>
KOKKOS_FORCEINLINE_FUNCTION auto prefetch_next(std::int64_t t, std::int64_t rows,
                                               std::int64_t features, const T*... row) {
  const std::int64_t step = t + 1 < rows ? features : 0;
  return [=](std::int64_t d) { (prefetch_chunk(row + step + d), ...); };
}

/// Mean and variance come from one pass over the differences to a shift, the mean of the row's
/// first `lanes` elements. It is off by at most sqrt(features / lanes) standard deviations, so the
/// variance loses at most the factor 1 + features / lanes of its accuracy, usually none.
template <class T>
struct LayerNorm {
  const T* x_TD;
  const T* weight_D;
  const T* bias_D;
  T* y_TD;
  float* mean_T;
  float* rstd_T;
  std::int64_t rows;
  std::int64_t features;
  float epsilon;

  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const T* row = x_TD + t * features;
    const auto count = static_cast<float>(features);
    const auto ahead = prefetch_next(t, rows, features, row);
    const float shift = first_mean(row);
    Lanes sum;
    Lanes squares;
    fill(sum, 0.0F);
    fill(squares, 0.0F);
    read_row(
        NothingAhead{}, features,
        [&](int lane, float x) {
          const float shifted = x - shift;
          sum[lane] += shifted;
          squares[lane] += shifted * shifted;
        },
        row);
    const float shifted_mean = fold_sum(sum) / count;
    const float mean = shift + shifted_mean;
    const float rounded = fold_sum(squares) / count - shifted_mean * shifted_mean;
    const float variance = rounded < 0.0F ? 0.0F : rounded;  // NaN stays NaN
    const float rstd = 1.0F / std::sqrt(variance + epsilon);
    map(
        ahead, features,
        [mean, rstd](float x, float weight, float bias) {
          return (x - mean) * rstd * weight + bias;
        },
        y_TD + t * features, row, weight_D, bias_D);
    mean_T[t] = mean;
    rstd_T[t] = rstd;
  }

  /// Mean of the row's first elements.
  KOKKOS_FORCEINLINE_FUNCTION float first_mean(const T* row) const {
    const std::int64_t count = features < lanes ? features : lanes;
    return sum_row(
               NothingAhead{}, count, [](float x) { return x; }, row) /
           static_cast<float>(count);
  }
};

template <class T>
struct RmsNorm {
  const T* x_TD;
  const T* weight_D;
  T* y_TD;
  float* rstd_T;
  std::int64_t rows;
  std::int64_t features;
  float epsilon;

  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const T* row = x_TD + t * features;
    const auto ahead = prefetch_next(t, rows, features, row);
    const float squares = sum_row(
        ahead, features, [](float x) { return x * x; }, row);
    const float rstd = 1.0F / std::sqrt(squares / static_cast<float>(features) + epsilon);
    map(
        ahead, features, [rstd](float x, float weight) { return x * rstd * weight; },
        y_TD + t * features, row, weight_D);
    rstd_T[t] = rstd;
  }
};

/// One block of rows of either backward pass: the gradient of each row, and the block's sums for
/// dweight (and, where `centred`, dbias) in the order of lanes.
template <class T, bool centred>
struct NormBackward {
  const T* dy_TD;
  const T* x_TD;
  const T* weight_D;
  const float* mean_T;
  const float* rstd_T;
  T* dx_TD;
  float* partial_BD;  ///< per block `padded` sums for dweight, then as many for dbias
  std::int64_t rows;
  std::int64_t features;
  std::int64_t padded;  ///< features rounded up to whole chunks

  static constexpr int sums = centred ? 2 : 1;

  KOKKOS_FUNCTION void operator()(std::int64_t block) const {
    float* dweight = partial_BD + block * sums * padded;
    for (std::int64_t i = 0; i < sums * padded; ++i) {
      dweight[i] = 0;
    }
    const std::int64_t begin = block * rows_per_block;
    const std::int64_t end = begin + rows_per_block < rows ? begin + rows_per_block : rows;
    Row row = sum_up(begin);
    for (std::int64_t t = begin; t < end; ++t) {
      row = add_row(t, t + 1 < end ? t + 1 : t, row, dweight, dweight + padded);
    }
  }

  /// What an element needs to know of its row.
  struct Row {
    float mean;
    float rstd;
    float mean_g;       ///< of dy * weight
    float mean_g_xhat;  ///< of dy * weight * xhat
  };

  /// Adds an element to the sums over its row, of dy * weight and of dy * weight * (x - mean).
  KOKKOS_FORCEINLINE_FUNCTION auto summing(std::int64_t t, Lanes& g_sum,
                                           Lanes& g_centred_sum) const {
    fill(g_sum, 0.0F);
    fill(g_centred_sum, 0.0F);
    const float mean = mean_of(t);
    return [&g_sum, &g_centred_sum, mean](int lane, float dy, float x, float weight) {
      const float g = dy * weight;
      g_sum[lane] += g;
      g_centred_sum[lane] += g * (x - mean);
    };
  }
  KOKKOS_FORCEINLINE_FUNCTION Row row_of(std::int64_t t, Lanes& g_sum, Lanes& g_centred_sum) const {
    const auto count = static_cast<float>(features);
    const float rstd = rstd_T[t];
    return {mean_of(t), rstd, centred ? fold_sum(g_sum) / count : 0.0F,
            fold_sum(g_centred_sum) * rstd / count};
  }
  KOKKOS_FORCEINLINE_FUNCTION float mean_of(std::int64_t t) const {
    return centred ? mean_T[t] : 0.0F;
  }

  KOKKOS_FORCEINLINE_FUNCTION Row sum_up(std::int64_t t) const {
    Lanes g_sum;
    Lanes g_centred_sum;
    read_row(NothingAhead{}, features, summing(t, g_sum, g_centred_sum), dy_TD + t * features,
             x_TD + t * features, weight_D);
    return row_of(t, g_sum, g_centred_sum);
  }

  /// Adds row t, and sums up row `next` in the same loop: the one comes out of the cache while the
  /// other comes from memory, and neither waits for the other's arithmetic.
  KOKKOS_FORCEINLINE_FUNCTION Row add_row(std::int64_t t, std::int64_t next, const Row& row,
                                          float* dweight, float* dbias) const {
    const T* dy = dy_TD + t * features;
    const T* x = x_TD + t * features;
    T* dx = dx_TD + t * features;
    const T* next_dy = dy_TD + next * features;
    const T* next_x = x_TD + next * features;
    const std::int64_t ahead =
        next + 1 < rows && features >= prefetch_distance ? prefetch_distance : 0;
    Lanes g_sum;
    Lanes g_centred_sum;
    const auto sum_next = summing(next, g_sum, g_centred_sum);
    std::int64_t d = 0;
    for (; d + lanes <= features; d += lanes) {
      prefetch_chunk(next_dy + d + ahead);
      prefetch_chunk(next_x + d + ahead);
      prefetch_chunk(dx + d + ahead);
      float* dweight_chunk = dweight + d;
      float* dbias_chunk = dbias + d;
      map_chunk(
          [=](int lane, float dx_d, float dy_d, float x_d, float weight) {
            return add(row, dx_d, dy_d, x_d, weight, dweight_chunk[lane], dbias_chunk[lane]);
          },
          dx + d, dx + d, dy + d, x + d, weight_D + d);
      read_chunk(sum_next, next_dy + d, next_x + d, weight_D + d);
    }
    for (int lane = 0; d < features; ++d, ++lane) {
      store(dx[d], add(row, to_float(dx[d]), to_float(dy[d]), to_float(x[d]), to_float(weight_D[d]),
                       dweight[d], dbias[d]));
      sum_next(lane, to_float(next_dy[d]), to_float(next_x[d]), to_float(weight_D[d]));
    }
    return row_of(next, g_sum, g_centred_sum);
  }

  /// The new dx of one element.
  KOKKOS_FORCEINLINE_FUNCTION static float add(const Row& row, float dx, float dy, float x,
                                               float weight, float& dweight, float& dbias) {
    const float xhat = (x - row.mean) * row.rstd;
    dweight += dy * xhat;
    if constexpr (centred) {
      dbias += dy;
    }
    return dx + row.rstd * (dy * weight - row.mean_g - xhat * row.mean_g_xhat);
  }
};

/// target[d] += sum over blocks of partial[block][lane of d], blocks in order.
template <class T>
struct AddBlocks {
  const float* partial;
  float* target;
  std::int64_t blocks;
  std::int64_t stride;
  std::int64_t features;
  KOKKOS_FUNCTION void operator()(std::int64_t chunk) const {
    const float* from = partial + chunk * lanes;
    Lanes sum;
    fill(sum, 0.0F);
    for (std::int64_t block = 0; block < blocks; ++block) {
#pragma omp simd
      for (int i = 0; i < lanes; ++i) {
        sum[i] += from[block * stride + i];
      }
    }
    float* to = target + chunk * lanes;
    const std::int64_t left = features - chunk * lanes;
    for (int i = 0; i < lanes && i < left; ++i) {
      to[i] += sum[left >= lanes ? lane_of<T>(i) : i];
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
  const std::int64_t chunks = (features + lanes - 1) / lanes;
  const std::int64_t padded = chunks * lanes;
  const std::int64_t stride = NormBackward<T, centred>::sums * padded;
  auto* partial = static_cast<float*>(
      scratch(static_cast<std::size_t>(blocks * stride) * sizeof(float), stream));
  for_each(label, blocks, stream,
           NormBackward<T, centred>{dy_TD.as<T>(), x_TD.as<T>(), weight_D.as<T>(), mean_T, rstd_T,
                                    dx_TD.as<T>(), partial, rows, features, padded});
  for_each("norm_dweight", chunks, stream,
           AddBlocks<T>{partial, dweight_D, blocks, stride, features});
  if constexpr (centred) {
    for_each("norm_dbias", chunks, stream,
             AddBlocks<T>{partial + padded, dbias_D, blocks, stride, features});
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
    for_each(
        "layer_norm", x_TD.dim(0), stream,
        LayerNorm<T>{x_TD.as<T>(), weight_D.as<T>(), bias_D.as<T>(), y_TD.as<T>(),
                     mean_T.as<float>(), rstd_T.as<float>(), x_TD.dim(0), x_TD.dim(1), epsilon});
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
                        x_TD.dim(0), x_TD.dim(1), epsilon});
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
