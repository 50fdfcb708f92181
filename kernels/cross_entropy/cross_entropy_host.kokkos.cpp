// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cross_entropy_backend.hpp"
#include "runtime/launch.hpp"
#include "runtime/scratch.hpp"
#include "vectors/lanes.hpp"
#include "vectors/storage.hpp"
#include "vectors/vector_math.hpp"

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace fourfold::kernels {
namespace {

/// A row is taken in segments that stay in the first-level cache between the search for the largest
/// logit and the exponentials. One loop searches a segment and exponentiates the one before it, so
/// that memory is read while exponentials are computed.
constexpr std::int64_t most_segments = 256;

constexpr float lowest = std::numeric_limits<float>::lowest();

KOKKOS_FORCEINLINE_FUNCTION std::int64_t segment_length(std::int64_t vocabulary) {
  const std::int64_t chunks = (vocabulary / most_segments + lanes) / lanes;
  constexpr std::int64_t fewest_chunks = 64;
  return lanes * (chunks < fewest_chunks ? fewest_chunks : chunks);
}

/// Raises lanes to the logits of a chunk.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void raise_chunk(Lanes& largest, const T* logits) {
  read_chunk(
      [&](int lane, float logit) { largest[lane] = logit > largest[lane] ? logit : largest[lane]; },
      logits);
}
KOKKOS_FORCEINLINE_FUNCTION float fold_largest(Lanes& largest) {
  return fold(largest, [](float a, float b) { return b > a ? b : a; });
}

template <class T>
KOKKOS_FORCEINLINE_FUNCTION float maximum(const T* logits, std::int64_t count) {
  Lanes largest;
  fill(largest, lowest);
  read_row(
      NothingAhead{}, count,
      [&](int lane, float logit) { largest[lane] = logit > largest[lane] ? logit : largest[lane]; },
      logits);
  return fold_largest(largest);
}

/// vector_exp_minus(reference - logit), one step for all lanes after the other: the long chain of
/// operations of one element leaves the units idle.
KOKKOS_FORCEINLINE_FUNCTION void exps_minus(Lanes& e, const Lanes& logit, float reference) {
  Lanes distance;
#pragma omp simd
  for (int i = 0; i < lanes; ++i) {
    distance[i] = reference - logit[i];
  }
#pragma omp simd
  for (int i = 0; i < lanes; ++i) {
    distance[i] = distance[i] > 88.0F ? 88.0F : distance[i];
  }
#pragma omp simd
  for (int i = 0; i < lanes; ++i) {
    e[i] = vector_exp_minus_bounded(distance[i]);
  }
}

/// One work item takes every `workers`th row.
template <class T, bool with_gradient>
struct CrossEntropy {
  const T* logits_TV;
  T* gradient_TV;
  const std::int32_t* target_T;
  float* loss_T;
  std::int64_t rows;
  int columns;
  int vocabulary;
  float gradient_scale;
  float* exponentials;  ///< bf16 with gradient: `columns` floats for each worker
  std::int64_t workers;

  KOKKOS_FUNCTION void operator()(std::int64_t worker) const {
    for (std::int64_t t = worker; t < rows; t += workers) {
      take_row(t, worker);
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void take_row(std::int64_t t, std::int64_t worker) const {
    const T* row = logits_TV + t * columns;
    const std::int32_t target = target_T[t];
    if (target == ignored_target) {
      loss_T[t] = 0;
      if constexpr (with_gradient) {
        clear(gradient_TV + t * columns, 0);
      }
      return;
    }
    const float target_logit = to_float(row[target]);
    float* e = nullptr;
    if constexpr (with_gradient) {
      if constexpr (std::is_same_v<T, float>) {
        e = gradient_TV + t * columns;
      } else {
        e = exponentials + worker * columns;
      }
    }
    float reference[most_segments];
    float largest = 0;
    const float sum = exponentiate(row, e, reference, largest);
    loss_T[t] = std::log(sum) + (largest - target_logit);
    if constexpr (with_gradient) {
      T* gradient = gradient_TV + t * columns;
      const float factor = gradient_scale / sum;
      normalise(gradient, e, reference, largest, factor);
      clear(gradient, vocabulary);
      store(gradient[target], vector_exp_minus(largest - target_logit) * factor - gradient_scale);
    }
  }

  /// Sum of exp(logit - largest) over the row. Leaves in e, with gradient, each segment's
  /// exp(logit - reference[segment]) in the order of lanes. NaN among the logits makes the sum NaN.
  KOKKOS_FORCEINLINE_FUNCTION float exponentiate(const T* row, float* e, float* reference,
                                                 float& largest) const {
    Lanes sum;
    fill(sum, 0.0F);
    const std::int64_t length = segment_length(vocabulary);
    largest = maximum(row, vocabulary < length ? vocabulary : length);
    for (std::int64_t first = 0; first < vocabulary; first += length) {
      const std::int64_t count = vocabulary - first < length ? vocabulary - first : length;
      *reference++ = largest;
      const float next_largest = add_segment(row, first, count, largest, e, sum);
      if (next_largest > largest) {
        const float shrink = vector_exp_minus(next_largest - largest);
        for (float& lane : sum) {
          lane *= shrink;
        }
        largest = next_largest;
      }
    }
    return fold_sum(sum);
  }

  /// Adds exp(logit - reference) of a segment. Returns the largest logit of the next one.
  KOKKOS_FORCEINLINE_FUNCTION float add_segment(const T* row, std::int64_t first,
                                                std::int64_t count, float reference, float* e,
                                                Lanes& sum) const {
    Lanes largest;
    fill(largest, lowest);
    const T* next = row + first + count;
    const std::int64_t left = vocabulary - first - count;
    const std::int64_t next_count = left < count ? left : count;
    float* to = with_gradient ? e + first : nullptr;
    read_chunks(
        [&, next, left, next_count](std::int64_t v) {
          if (v + lanes <= next_count) {
            prefetch_chunk(next + element_ahead(v, left, 0));
            raise_chunk(largest, next + v);
          }
        },
        count,
        [&](std::int64_t valid, const Lanes& logit) { add_exps(valid, logit, reference, to, sum); },
        row + first);
    const std::int64_t rest = next_count % lanes;
    const float largest_chunk = fold_largest(largest);
    const float largest_rest = maximum(next + next_count - rest, rest);
    return largest_rest > largest_chunk ? largest_rest : largest_chunk;
  }

  KOKKOS_FORCEINLINE_FUNCTION static void add_exps(std::int64_t valid, const Lanes& logit,
                                                   float reference, float*& to, Lanes& sum) {
    if (valid == lanes) {
      Lanes chunk;
      exps_minus(chunk, logit, reference);
#pragma omp simd
      for (int i = 0; i < lanes; ++i) {
        sum[i] += chunk[i];
        if constexpr (with_gradient) {
          to[i] = chunk[i];
        }
      }
    } else {
      for (int i = 0; i < valid; ++i) {
        const float value = vector_exp_minus(reference - logit[i]);
        sum[i] += value;
        if constexpr (with_gradient) {
          to[i] = value;
        }
      }
    }
    to = with_gradient ? to + valid : to;
  }

  KOKKOS_FORCEINLINE_FUNCTION void normalise(T* gradient, const float* e, const float* reference,
                                             float largest, float factor) const {
    const std::int64_t length = segment_length(vocabulary);
    for (std::int64_t first = 0; first < vocabulary; first += length) {
      const std::int64_t count = vocabulary - first < length ? vocabulary - first : length;
      const float segment_factor = factor * vector_exp_minus(largest - *reference++);
      for_chunks(
          count, 0,
          [segment_factor](Lanes& y, const Lanes& chunk) {
#pragma omp simd
            for (int i = 0; i < lanes; ++i) {
              y[i] = chunk[i] * segment_factor;
            }
          },
          gradient + first, e + first);
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void clear(T* row, std::int64_t first) const {
    for (std::int64_t v = first; v < columns; ++v) {
      row[v] = T{};
    }
  }
};

}  // namespace

void classify_rows(ConstTensorView logits_TV, void* gradient_TV, ConstTensorView target_T,
                   TensorView loss_T, int vocabulary, float gradient_scale,
                   device::StreamRef stream) {
  constexpr std::int64_t most_workers = 1024;
  const std::int64_t rows = logits_TV.dim(0);
  const int columns = row_length(logits_TV.dim(1));
  const std::int64_t threads = execution_space(stream).concurrency();
  const std::int64_t workers = std::min({rows, most_workers, threads});
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    const auto classify = [&]<bool with_gradient>(float* exponentials) {
      for_each("cross_entropy", workers, stream,
               CrossEntropy<T, with_gradient>{logits_TV.as<T>(), static_cast<T*>(gradient_TV),
                                              target_T.as<std::int32_t>(), loss_T.as<float>(), rows,
                                              columns, vocabulary, gradient_scale, exponentials,
                                              workers});
    };
    if (gradient_TV == nullptr) {
      classify.template operator()<false>(nullptr);
    } else {
      classify.template operator()<true>(
          std::is_same_v<T, float> ? nullptr : scratch<float>(workers * columns, stream));
    }
  });
}

void classify_part_rows(ConstTensorView logits_TV, std::int64_t first_column,
                        ConstTensorView target_T, TensorView statistics_T3,
                        device::StreamRef stream) {
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    const auto classify = [=, columns = logits_TV.dim(1), logits = logits_TV.as<T>(),
                           target_of = target_T.as<std::int32_t>(),
                           statistics_of = statistics_T3.as<float>()](std::int64_t t) {
      const T* row = logits + t * columns;
      const float largest = maximum(row, columns);
      const std::int64_t target = target_of[t] - first_column;
      float* statistics = statistics_of + t * part_statistics;
      statistics[0] = largest;
      statistics[1] = sum_row(
          NothingAhead{}, columns, [largest](float x) { return vector_exp_minus(largest - x); },
          row);
      statistics[2] = target >= 0 && target < columns ? to_float(row[target]) : 0.0F;
    };
    for_each("cross_entropy_part", logits_TV.dim(0), stream, classify);
  });
}

void differentiate_part_rows(TensorView logits_TV, std::int64_t first_column,
                             ConstTensorView target_T, ConstTensorView normaliser_T2,
                             float gradient_scale, device::StreamRef stream) {
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    const auto differentiate = [=, columns = logits_TV.dim(1), logits = logits_TV.as<T>(),
                                target_of = target_T.as<std::int32_t>(),
                                normaliser_of = normaliser_T2.as<float>()](std::int64_t t) {
      T* row = logits + t * columns;
      if (target_of[t] == ignored_target) {
        std::fill_n(row, columns, T{});
        return;
      }
      const float largest = normaliser_of[2 * t];
      const float factor = gradient_scale * normaliser_of[2 * t + 1];
      const std::int64_t target = target_of[t] - first_column;
      const bool here = target >= 0 && target < columns;
      const float target_logit = here ? to_float(row[target]) : 0.0F;
      for_chunks(
          columns, 0,
          [largest, factor](Lanes& y, const Lanes& x) {
#pragma omp simd
            for (int i = 0; i < lanes; ++i) {
              y[i] = vector_exp_minus(largest - x[i]) * factor;
            }
          },
          row, static_cast<const T*>(row));
      if (here) {  // from the float value: what was stored may have been rounded
        store(row[target], vector_exp_minus(largest - target_logit) * factor - gradient_scale);
      }
    };
    for_each("cross_entropy_grad", logits_TV.dim(0), stream, differentiate);
  });
}

}  // namespace fourfold::kernels
