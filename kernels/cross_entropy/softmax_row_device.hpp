// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The softmax of a row of logits by a team of a device, in two passes: one finds the largest logit
/// and the sum of exponentials together, the other writes the gradient over the logits, which the
/// caches still hold. Nothing else is written.
#pragma once

#include "vectors/team_rows_device.hpp"

#include <cstdint>
#include <limits>

namespace fourfold::kernels {

/// Two such teams are on a multiprocessor: one reads while the other is at its barriers.
inline constexpr int softmax_warps = 16;
inline constexpr int softmax_teams = 2;
using SoftmaxThreads = RowThreads<softmax_warps, false>;

/// Packs that a thread reads before it takes the first of them.
inline constexpr int packs_ahead = 4;

inline constexpr float lowest_logit = std::numeric_limits<float>::lowest();

/// A team for each row.
template <class Body>
void for_softmax_rows(const char* label, std::int64_t rows, device::StreamRef stream,
                      const Body& body) {
  for_teams<softmax_warps, softmax_teams>(label, rows, SoftmaxThreads::team_bytes, stream, body);
}

template <class T>
inline constexpr int softmax_step = SoftmaxThreads::threads* pack_elements<T>;

struct SoftmaxSum {
  float largest;
  float sum;  ///< of exp(logit - largest); NaN where a logit is
};

/// The next packs of a thread's, from that at `first` on; those after `end` are of no use.
template <bool whole, class T>
KOKKOS_FORCEINLINE_FUNCTION void load_ahead(const T* row, int first, int end,
                                            PackWords (&ahead)[packs_ahead]) {
  FOURFOLD_UNROLL
  for (int k = 0; k < packs_ahead; ++k) {
    ahead[k] = load_part(row, first + k * softmax_step<T>, end, whole);
  }
}

/// Adds a pack, of which the first `valid` elements count.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void add_logits(const PackWords& pack, int valid, SoftmaxSum& all) {
  PackOf<T> x;
  float largest = lowest_logit;
  FOURFOLD_UNROLL
  for (int i = 0; i < pack_elements<T>; ++i) {
    x[i] = i < valid ? element_of<T>(pack, i) : -std::numeric_limits<float>::infinity();
    largest = x[i] > largest ? x[i] : largest;
  }
  if (largest > all.largest) {
    all.sum *= fast_exp_minus(largest - all.largest);
    all.largest = largest;
  }
  float sum = 0;
  FOURFOLD_UNROLL
  for (int i = 0; i < pack_elements<T>; ++i) {
    sum += fast_exp_minus(all.largest - x[i]);
  }
  all.sum += sum;
}

/// Of the first `vocabulary` logits of a row; the whole team. The team's barriers are after all
/// its reads. @tparam whole  as in_packs says of whole rows
template <bool whole, class T>
KOKKOS_FORCEINLINE_FUNCTION SoftmaxSum sum_logits(SoftmaxThreads& threads, const T* row,
                                                  int vocabulary) {
  SoftmaxSum mine = {lowest_logit, 0};
  for (int first = threads.rank() * pack_elements<T>; first < vocabulary;
       first += packs_ahead * softmax_step<T>) {
    PackWords ahead[packs_ahead];
    load_ahead<whole>(row, first, vocabulary, ahead);
    FOURFOLD_UNROLL
    for (int k = 0; k < packs_ahead; ++k) {
      const int valid = vocabulary - (first + k * softmax_step<T>);
      if (valid >= pack_elements<T>) {
        add_logits<T>(ahead[k], pack_elements<T>, mine);
      } else if (valid > 0) {
        add_logits<T>(ahead[k], valid, mine);
      }
    }
  }
  const float largest = threads.largest(mine.largest);
  float sum[1] = {mine.sum * fast_exp_minus(largest - mine.largest)};
  threads.sum(sum);
  return {largest, sum[0]};
}

/// Whether a column is in one of the thread's packs: what it wrote there it may write again.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION bool is_mine(const SoftmaxThreads& threads, std::int64_t column) {
  return column / pack_elements<T> % SoftmaxThreads::threads == threads.rank();
}

/// row = factor * exp(row - largest), zero from `vocabulary` on.
template <bool whole, class T>
KOKKOS_FORCEINLINE_FUNCTION void write_softmax(const SoftmaxThreads& threads, T* row, int columns,
                                               int vocabulary, float largest, float factor) {
  for (int begin = threads.rank() * pack_elements<T>; begin < columns;
       begin += packs_ahead * softmax_step<T>) {
    PackWords ahead[packs_ahead];
    load_ahead<whole>(static_cast<const T*>(row), begin, columns, ahead);
    FOURFOLD_UNROLL
    for (int k = 0; k < packs_ahead; ++k) {
      const int first = begin + k * softmax_step<T>;
      PackOf<T> y;
      FOURFOLD_UNROLL
      for (int i = 0; i < pack_elements<T>; ++i) {
        y[i] = fast_exp_minus(largest - element_of<T>(ahead[k], i)) * factor;
      }
      if (first + pack_elements < T >> vocabulary) {
        FOURFOLD_UNROLL
        for (int i = 0; i < pack_elements<T>; ++i) {
          y[i] = first + i < vocabulary ? y[i] : 0.0F;
        }
      }
      store_part(row, first, columns, whole, y);
    }
  }
}

template <bool whole, class T>
KOKKOS_FORCEINLINE_FUNCTION void clear_row(const SoftmaxThreads& threads, T* row, int columns) {
  const PackOf<T> zeros = {};
  for (int first = threads.rank() * pack_elements<T>; first < columns; first += softmax_step<T>) {
    store_part(row, first, columns, whole, zeros);
  }
}

}  // namespace fourfold::kernels
