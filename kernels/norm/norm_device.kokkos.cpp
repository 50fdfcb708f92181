// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The norms' forward pass on a device: a row is read once into the registers of a warp, or of a
/// team, summed there and written once. Rows that registers do not hold are read again from caches.
#include "norm_backend.hpp"
#include "norm_gradient_device.hpp"

#include <cmath>

namespace fourfold::kernels {
namespace {

/// @tparam whole_  as in_packs says of all operands
template <class T, bool whole_>
struct Operands : NormOperands<T> {
  static constexpr bool whole = whole_;
};

struct RowStatistics {
  float mean;
  float rstd;
};

/// Of sums over a row of x - shift and of its square.
KOKKOS_FORCEINLINE_FUNCTION RowStatistics statistics(float sum, float squares, float count,
                                                     float epsilon) {
  const float mean = sum / count;
  const float rounded = multiply_add(-mean, mean, squares / count);
  const float variance = rounded < 0.0F ? 0.0F : rounded;  // NaN stays NaN
  return {mean, 1.0F / std::sqrt(variance + epsilon)};
}

/// y = (x - mean) * rstd * weight + bias of the pack at `first`.
template <bool centred, class T, bool whole>
KOKKOS_FORCEINLINE_FUNCTION void finish_pack(const Operands<T, whole>& with, T* y, int first,
                                             const PackOf<T>& x, const RowStatistics& row) {
  const PackWords weight = load_part(with.weight_D, first, with.features, with.whole);
  PackWords bias;
  if constexpr (centred) {
    bias = load_part(with.bias_D, first, with.features, with.whole);
  }
  PackOf<T> result;
  FOURFOLD_UNROLL
  for (int i = 0; i < pack_elements<T>; ++i) {
    if constexpr (centred) {
      result[i] = multiply_add((x[i] - row.mean) * row.rstd, element_of<T>(weight, i),
                               element_of<T>(bias, i));
    } else {
      result[i] = x[i] * row.rstd * element_of<T>(weight, i);
    }
  }
  store_part(y, first, with.features, with.whole, result);
}

/// The pack at `first` of row t of what is normalised, as storage holds it: x, or x + residual,
/// which is written too.
template <bool adds, class T, bool whole>
KOKKOS_FORCEINLINE_FUNCTION PackWords pack_to_normalise(const Operands<T, whole>& with,
                                                        std::int64_t t, int first) {
  const std::int64_t begin = t * with.features;
  const PackWords x = load_part(with.x_TD + begin, first, with.features, with.whole);
  if constexpr (!adds) {
    return x;
  } else {
    const PackWords residual =
        load_part(with.residual_TD + begin, first, with.features, with.whole);
    PackOf<T> sum;
    FOURFOLD_UNROLL
    for (int i = 0; i < pack_elements<T>; ++i) {
      sum[i] = element_of<T>(x, i) + element_of<T>(residual, i);
    }
    store_part(with.sum_TD + begin, first, with.features, with.whole, sum);
    return stored_pack<T>(sum);
  }
}

/// The mean is taken off in two steps: what the first one leaves, by rounding, the second one
/// finds.
template <class T, bool whole, bool centred, bool adds, class Row>
struct Norm {
  Operands<T, whole> with;

  static constexpr int packs = Row::packs_each;
  static constexpr int n = pack_elements<T>;

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    std::int64_t t = team.league_rank();
    if constexpr (Row::by_warp) {
      t = t * team.team_size() + team.team_rank();
    }
    if (t >= with.rows) {
      return;  // whole warps, which meet at no barrier
    }
    typename Row::Threads threads(team);
    PackWords stored[packs];
    FOURFOLD_UNROLL
    for (int k = 0; k < packs; ++k) {
      stored[k] =
          pack_to_normalise<adds>(with, t, first_of_pack<T, Row::threads>(threads.rank(), k));
    }
    float x[packs][n];
    FOURFOLD_UNROLL
    for (int k = 0; k < packs; ++k) {
      FOURFOLD_UNROLL
      for (int i = 0; i < n; ++i) {
        x[k][i] = element_of<T>(stored[k], i);
      }
    }
    const auto count = static_cast<float>(with.features);
    const float shift = centred ? take_off_mean(threads, x, count) : 0.0F;
    const RowStatistics row = statistics_of(threads, x, count);
    FOURFOLD_UNROLL
    for (int k = 0; k < packs; ++k) {
      finish_pack<centred>(with, with.y_TD + t * with.features,
                           first_of_pack<T, Row::threads>(threads.rank(), k), x[k], row);
    }
    threads.once([&] {
      if constexpr (centred) {
        with.mean_T[t] = shift + row.mean;
      }
      with.rstd_T[t] = row.rstd;
    });
  }

  /// Of a row whose mean is taken off, or of which none is wanted.
  KOKKOS_FORCEINLINE_FUNCTION RowStatistics statistics_of(typename Row::Threads& threads,
                                                          const float (&x)[packs][n],
                                                          float count) const {
    float sums[2] = {0, 0};
    FOURFOLD_UNROLL
    for (int k = 0; k < packs; ++k) {
      float sum = 0;
      float squares = 0;
      FOURFOLD_UNROLL
      for (int i = 0; i < n; ++i) {
        sum += x[k][i];
        squares = multiply_add(x[k][i], x[k][i], squares);
      }
      sums[0] += sum;
      sums[1] += squares;
    }
    sums[0] = centred ? sums[0] : 0.0F;
    threads.sum(sums);
    return statistics(sums[0], sums[1], count, with.epsilon);
  }

  /// x -= its mean, as rounded; zeros after the row stay. Returns that mean.
  KOKKOS_FORCEINLINE_FUNCTION float take_off_mean(typename Row::Threads& threads,
                                                  float (&x)[packs][n], float count) const {
    float total[1] = {0};
    FOURFOLD_UNROLL
    for (int k = 0; k < packs; ++k) {
      float sum = 0;
      FOURFOLD_UNROLL
      for (int i = 0; i < n; ++i) {
        sum += x[k][i];
      }
      total[0] += sum;
    }
    threads.sum(total);
    const float mean = total[0] / count;
    FOURFOLD_UNROLL
    for (int k = 0; k < packs; ++k) {
      const int left = with.features - first_of_pack<T, Row::threads>(threads.rank(), k);
      const float shift = left > 0 ? mean : 0.0F;
      FOURFOLD_UNROLL
      for (int i = 0; i < n; ++i) {
        x[k][i] = whole || i < left ? x[k][i] - shift : 0.0F;
      }
    }
    return mean;
  }
};

/// The same for rows of any length, which a team reads three times, or twice.
template <class T, bool whole, bool centred, bool adds>
struct LongNorm {
  Operands<T, whole> with;

  using Threads = RowThreads<norm_warps, false>;
  static constexpr int n = pack_elements<T>;

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    const std::int64_t t = team.league_rank();
    Threads threads(team);
    if constexpr (adds) {  // what a thread writes here it reads itself below
      for (int first = threads.rank() * n; first < with.features; first += Threads::threads * n) {
        pack_to_normalise<adds>(with, t, first);
      }
    }
    const T* const row = (adds ? with.sum_TD : with.x_TD) + t * with.features;
    const auto count = static_cast<float>(with.features);
    float shift = 0;
    if constexpr (centred) {
      float sums[2];
      sum_up(threads, row, 0.0F, sums);
      shift = sums[0] / count;
    }
    float sums[2];
    sum_up(threads, row, shift, sums);
    const RowStatistics found = statistics(centred ? sums[0] : 0.0F, sums[1], count, with.epsilon);
    for (int first = threads.rank() * n; first < with.features; first += Threads::threads * n) {
      PackOf<T> x;
      load(row, first, shift, x);
      finish_pack<centred>(with, with.y_TD + t * with.features, first, x, found);
    }
    threads.once([&] {
      if constexpr (centred) {
        with.mean_T[t] = shift + found.mean;
      }
      with.rstd_T[t] = found.rstd;
    });
  }

  KOKKOS_FORCEINLINE_FUNCTION void load(const T* row, int first, float shift, PackOf<T>& x) const {
    const PackWords stored = load_part(row, first, with.features, with.whole);
    FOURFOLD_UNROLL
    for (int i = 0; i < n; ++i) {
      x[i] = first + i < with.features ? element_of<T>(stored, i) - shift : 0.0F;
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void sum_up(Threads& threads, const T* row, float shift,
                                          float (&sums)[2]) const {
    sums[0] = sums[1] = 0;
    for (int first = threads.rank() * n; first < with.features; first += Threads::threads * n) {
      PackOf<T> x;
      load(row, first, shift, x);
      float sum = 0;
      float squares = 0;
      FOURFOLD_UNROLL
      for (int i = 0; i < n; ++i) {
        sum += x[i];
        squares = multiply_add(x[i], x[i], squares);
      }
      sums[0] += sum;
      sums[1] += squares;
    }
    threads.sum(sums);
  }
};

template <bool centred, bool adds, class T, bool whole>
void norm(const char* label, const Operands<T, whole>& with, device::StreamRef stream) {
  const std::int64_t packs = (with.features + pack_elements<T> - 1) / pack_elements<T>;
  const std::int64_t teams_by_warp =
      (with.rows + warps_here(norm_warps) - 1) / warps_here(norm_warps);
  if (packs <= 96) {  // 768 of 16 bits
    using Row = NormRow<96, true>;
    for_teams<norm_warps, 3>(label, teams_by_warp, 0, stream,
                             Norm<T, whole, centred, adds, Row>{with});
  } else if (packs <= 128) {
    using Row = NormRow<128, true>;
    for_teams<norm_warps, 3>(label, teams_by_warp, 0, stream,
                             Norm<T, whole, centred, adds, Row>{with});
  } else if (packs <= 256) {
    using Row = NormRow<256, true>;
    for_teams<norm_warps, 2>(label, teams_by_warp, 0, stream,
                             Norm<T, whole, centred, adds, Row>{with});
  } else if (packs <= 512) {
    using Row = NormRow<512, false>;
    for_teams<norm_warps, 4>(label, with.rows, Row::Threads::team_bytes, stream,
                             Norm<T, whole, centred, adds, Row>{with});
  } else if (packs <= 1024) {
    using Row = NormRow<1024, false>;
    for_teams<norm_warps, 3>(label, with.rows, Row::Threads::team_bytes, stream,
                             Norm<T, whole, centred, adds, Row>{with});
  } else {
    using Body = LongNorm<T, whole, centred, adds>;
    for_teams<norm_warps, 4>(label, with.rows, Body::Threads::team_bytes, stream, Body{with});
  }
}

template <class T, bool whole>
void norm(const char* label, const Operands<T, whole>& with, device::StreamRef stream) {
  const bool centred = with.bias_D != nullptr;
  if (with.residual_TD != nullptr) {
    centred ? norm<true, true>(label, with, stream) : norm<false, true>(label, with, stream);
  } else {
    centred ? norm<true, false>(label, with, stream) : norm<false, false>(label, with, stream);
  }
}

}  // namespace

template <class T>
void norm_rows(const char* label, const NormOperands<T>& of, device::StreamRef stream) {
  // An absent operand is at a pack.
  if (in_packs(of.features, of.x_TD, of.residual_TD, of.weight_D, of.bias_D, of.sum_TD, of.y_TD)) {
    norm(label, Operands<T, true>{of}, stream);
  } else {
    norm(label, Operands<T, false>{of}, stream);
  }
}
template void norm_rows(const char*, const NormOperands<float>&, device::StreamRef);
template void norm_rows(const char*, const NormOperands<BFloat16>&, device::StreamRef);
template void norm_rows(const char*, const NormOperands<Float16>&, device::StreamRef);

}  // namespace fourfold::kernels
