// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "norm_backend.hpp"
#include "runtime/launch.hpp"
#include "runtime/scratch.hpp"
#include "vectors/lanes.hpp"
#include "vectors/storage.hpp"

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

/// Prefetches of row t + 1 what normalising it will read first.
template <bool adds, class T>
KOKKOS_FORCEINLINE_FUNCTION auto prefetch_next(const NormOperands<T>& with, std::int64_t t) {
  const T* const x = with.x_TD + t * with.features;
  if constexpr (adds) {
    return prefetch_next(t, with.rows, with.features, x, with.residual_TD + t * with.features);
  } else {
    return prefetch_next(t, with.rows, with.features, x);
  }
}

/// Row t of what is normalised: x, or x + residual, rounded to storage.
template <bool adds, class T>
KOKKOS_FORCEINLINE_FUNCTION const T* row_to_normalise(const NormOperands<T>& with, std::int64_t t) {
  const T* const x = with.x_TD + t * with.features;
  if constexpr (!adds) {
    return x;
  } else {
    T* const sum = with.sum_TD + t * with.features;
    map(
        NothingAhead{}, with.features, [](float x_d, float residual_d) { return x_d + residual_d; },
        sum, x, with.residual_TD + t * with.features);
    return sum;
  }
}

/// Mean of a row's first elements.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION float first_mean(const T* row, std::int64_t features) {
  const std::int64_t count = features < lanes ? features : lanes;
  return sum_row(
             NothingAhead{}, count, [](float x) { return x; }, row) /
         static_cast<float>(count);
}

/// Mean and variance come from one pass over the differences to a shift, the mean of the row's
/// first `lanes` elements. It is off by at most sqrt(features / lanes) standard deviations, so the
/// variance loses at most the factor 1 + features / lanes of its accuracy, usually none.
template <bool adds, class T>
void layer_norm_rows(const char* label, const NormOperands<T>& with, device::StreamRef stream) {
  for_each(label, with.rows, stream, [with](std::int64_t t) {
    const std::int64_t features = with.features;
    const T* row = row_to_normalise<adds>(with, t);
    const auto count = static_cast<float>(features);
    const float shift = first_mean(row, features);
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
    const float rstd = 1.0F / std::sqrt(variance + with.epsilon);
    const auto normalise = [mean, rstd](float x, float weight, float bias) {
      return (x - mean) * rstd * weight + bias;
    };
    map(prefetch_next<adds>(with, t), features, normalise, with.y_TD + t * features, row,
        with.weight_D, with.bias_D);
    with.mean_T[t] = mean;
    with.rstd_T[t] = rstd;
  });
}

template <bool adds, class T>
void rms_norm_rows(const char* label, const NormOperands<T>& with, device::StreamRef stream) {
  for_each(label, with.rows, stream, [with](std::int64_t t) {
    const std::int64_t features = with.features;
    const T* row = row_to_normalise<adds>(with, t);
    const auto ahead = prefetch_next<adds>(with, t);
    const float squares = sum_row(
        ahead, features, [](float x) { return x * x; }, row);
    const float rstd = 1.0F / std::sqrt(squares / static_cast<float>(features) + with.epsilon);
    map(
        ahead, features, [rstd](float x, float weight) { return x * rstd * weight; },
        with.y_TD + t * features, row, with.weight_D);
    with.rstd_T[t] = rstd;
  });
}

/// One block of rows of either backward pass: the gradient of each row, and the block's sums for
/// dweight (and, where `centred`, dbias) in the order of lanes.
template <class T, bool centred>
struct NormBackward {
  NormBackwardOperands<T> with;
  float* partial_BD;    ///< per block `padded` sums for dweight, then as many for dbias
  std::int64_t padded;  ///< features rounded up to whole chunks

  static constexpr int sums = centred ? 2 : 1;

  KOKKOS_FUNCTION void operator()(std::int64_t block) const {
    float* dweight = partial_BD + block * sums * padded;
    for (std::int64_t i = 0; i < sums * padded; ++i) {
      dweight[i] = 0;
    }
    const std::int64_t begin = block * rows_per_block;
    const std::int64_t end =
        begin + rows_per_block < with.rows ? begin + rows_per_block : with.rows;
    RowMeans row = sum_up(begin);
    for (std::int64_t t = begin; t < end; ++t) {
      row = add_row(t, t + 1 < end ? t + 1 : t, row, dweight, dweight + padded);
    }
  }

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
  KOKKOS_FORCEINLINE_FUNCTION RowMeans row_of(std::int64_t t, Lanes& g_sum,
                                              Lanes& g_centred_sum) const {
    const auto count = static_cast<float>(with.features);
    const float rstd = with.rstd_T[t];
    return {mean_of(t), rstd, centred ? fold_sum(g_sum) / count : 0.0F,
            fold_sum(g_centred_sum) * rstd / count};
  }
  KOKKOS_FORCEINLINE_FUNCTION float mean_of(std::int64_t t) const {
    return centred ? with.mean_T[t] : 0.0F;
  }

  KOKKOS_FORCEINLINE_FUNCTION RowMeans sum_up(std::int64_t t) const {
    const std::int64_t features = with.features;
    Lanes g_sum;
    Lanes g_centred_sum;
    read_row(NothingAhead{}, features, summing(t, g_sum, g_centred_sum), with.dy_TD + t * features,
             with.x_TD + t * features, with.weight_D);
    return row_of(t, g_sum, g_centred_sum);
  }

  /// Adds row t, and sums up row `next` in the same loop: the one comes out of the cache while the
  /// other comes from memory, and neither waits for the other's arithmetic.
  KOKKOS_FORCEINLINE_FUNCTION RowMeans add_row(std::int64_t t, std::int64_t next,
                                               const RowMeans& row, float* dweight,
                                               float* dbias) const {
    const std::int64_t features = with.features;
    const T* dy = with.dy_TD + t * features;
    const T* x = with.x_TD + t * features;
    T* dx = with.dx_TD + t * features;
    const T* weight_D = with.weight_D;
    const T* next_dy = with.dy_TD + next * features;
    const T* next_x = with.x_TD + next * features;
    const std::int64_t ahead =
        next + 1 < with.rows && features >= prefetch_distance ? prefetch_distance : 0;
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
  KOKKOS_FORCEINLINE_FUNCTION static float add(const RowMeans& row, float dx, float dy, float x,
                                               float weight, float& dweight, float& dbias) {
    const float xhat = (x - row.mean) * row.rstd;
    dweight += dy * xhat;
    if constexpr (centred) {
      dbias += dy;
    }
    return dx + row.rstd * (dy * weight - row.g - xhat * row.g_xhat);
  }
};

/// target[d] += sum over blocks of partial[block][lane of d], blocks in order.
template <class T>
void add_blocks(const char* label, const float* partial, float* target, std::int64_t blocks,
                std::int64_t stride, std::int64_t features, device::StreamRef stream) {
  for_each(label, (features + lanes - 1) / lanes, stream, [=](std::int64_t chunk) {
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
  });
}

template <class T, bool centred>
void norm_backward(const char* label, const NormBackwardOperands<T>& with,
                   device::StreamRef stream) {
  const std::int64_t blocks = (with.rows + rows_per_block - 1) / rows_per_block;
  const std::int64_t padded = (with.features + lanes - 1) / lanes * lanes;
  const std::int64_t stride = NormBackward<T, centred>::sums * padded;
  auto* partial = scratch<float>(blocks * stride, stream);
  for_each(label, blocks, stream, NormBackward<T, centred>{with, partial, padded});
  add_blocks<T>("norm_dweight", partial, with.dweight_D, blocks, stride, with.features, stream);
  if constexpr (centred) {
    add_blocks<T>("norm_dbias", partial + padded, with.dbias_D, blocks, stride, with.features,
                  stream);
  }
}

template <class T, bool adds>
void norm(const char* label, const NormOperands<T>& with, device::StreamRef stream) {
  if (with.bias_D != nullptr) {
    layer_norm_rows<adds>(label, with, stream);
  } else {
    rms_norm_rows<adds>(label, with, stream);
  }
}

}  // namespace

template <class T>
void norm_rows(const char* label, const NormOperands<T>& operands, device::StreamRef stream) {
  if (operands.residual_TD != nullptr) {
    norm<T, true>(label, operands, stream);
  } else {
    norm<T, false>(label, operands, stream);
  }
}
template void norm_rows(const char*, const NormOperands<float>&, device::StreamRef);
template void norm_rows(const char*, const NormOperands<BFloat16>&, device::StreamRef);
template void norm_rows(const char*, const NormOperands<Float16>&, device::StreamRef);

template <class T>
void norm_rows_backward(const char* label, const NormBackwardOperands<T>& operands,
                        device::StreamRef stream) {
  if (operands.mean_T != nullptr) {
    norm_backward<T, true>(label, operands, stream);
  } else {
    norm_backward<T, false>(label, operands, stream);
  }
}
template void norm_rows_backward(const char*, const NormBackwardOperands<float>&,
                                 device::StreamRef);
template void norm_rows_backward(const char*, const NormBackwardOperands<BFloat16>&,
                                 device::StreamRef);
template void norm_rows_backward(const char*, const NormBackwardOperands<Float16>&,
                                 device::StreamRef);

}  // namespace fourfold::kernels
