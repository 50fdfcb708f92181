// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A part of the classifier on a device: a team per row (softmax_row.hpp).
#include "softmax_row.hpp"
#include "storage.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/cross_entropy.hpp>
#include <fourfold/kernels/vocabulary_cross_entropy.hpp>

#include <limits>

namespace fourfold::kernels {
namespace {

template <class T>
struct Part {
  const T* logits_TV;
  const std::int32_t* target_T;
  float* statistics_T3;
  std::int64_t first_column;
  int columns;
  bool whole;

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    SoftmaxThreads threads(team);
    const std::int64_t t = team.league_rank();
    const T* const row = logits_TV + t * columns;
    const SoftmaxSum all = sum_logits(threads, row, columns, whole);
    threads.once([&] {
      const std::int64_t target = target_T[t] - first_column;
      float* const statistics = statistics_T3 + t * part_statistics;
      statistics[0] = all.largest;
      statistics[1] = all.sum;
      statistics[2] = target >= 0 && target < columns ? to_float(row[target]) : 0.0F;
    });
  }
};

template <class T>
struct PartGradient {
  T* logits_TV;
  const std::int32_t* target_T;
  const float* normaliser_T2;
  std::int64_t first_column;
  int columns;
  float gradient_scale;
  bool whole;

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    const SoftmaxThreads threads(team);
    const std::int64_t t = team.league_rank();
    T* const row = logits_TV + t * columns;
    if (target_T[t] == ignored_target) {
      clear_row(threads, row, columns, whole);
      return;
    }
    const float largest = normaliser_T2[2 * t];
    const float factor = gradient_scale * normaliser_T2[2 * t + 1];
    const std::int64_t target = target_T[t] - first_column;
    // Read and written by one thread: nobody waits for the others here.
    const bool is_here = target >= 0 && target < columns && is_mine<T>(threads, target);
    const float target_logit = is_here ? to_float(row[target]) : 0.0F;
    write_softmax(threads, row, columns, columns, largest, factor, whole);
    if (is_here) {
      store(row[target], fast_exp_minus(largest - target_logit) * factor - gradient_scale);
    }
  }
};

}  // namespace

void cross_entropy_part(ConstTensorView logits_TV, std::int64_t first_column,
                        ConstTensorView target_T, TensorView statistics_T3,
                        device::StreamRef stream) {
  const std::int64_t tokens = logits_TV.dim(0);
  FOURFOLD_EXPECT(logits_TV.shape().rank() == 2 && target_T.elements() == tokens);
  FOURFOLD_EXPECT(logits_TV.dim(1) <= std::numeric_limits<int>::max() / 2);
  FOURFOLD_EXPECT(statistics_T3.elements() == tokens * part_statistics && first_column >= 0);
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    const T* const logits = logits_TV.as<T>();
    for_teams<softmax_warps, softmax_teams>(
        "cross_entropy_part", tokens, SoftmaxThreads::team_bytes, stream,
        Part<T>{logits, target_T.as<std::int32_t>(), statistics_T3.as<float>(), first_column,
                static_cast<int>(logits_TV.dim(1)), in_packs(logits_TV.dim(1), logits)});
  });
}

void cross_entropy_part_gradient(TensorView logits_TV, std::int64_t first_column,
                                 ConstTensorView target_T, ConstTensorView normaliser_T2,
                                 float gradient_scale, device::StreamRef stream) {
  const std::int64_t tokens = logits_TV.dim(0);
  FOURFOLD_EXPECT(logits_TV.shape().rank() == 2 && target_T.elements() == tokens);
  FOURFOLD_EXPECT(logits_TV.dim(1) <= std::numeric_limits<int>::max() / 2);
  FOURFOLD_EXPECT(normaliser_T2.elements() == 2 * tokens && first_column >= 0);
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    T* const logits = logits_TV.as<T>();
    for_teams<softmax_warps, softmax_teams>(
        "cross_entropy_grad", tokens, SoftmaxThreads::team_bytes, stream,
        PartGradient<T>{logits, target_T.as<std::int32_t>(), normaliser_T2.as<float>(),
                        first_column, static_cast<int>(logits_TV.dim(1)), gradient_scale,
                        in_packs(logits_TV.dim(1), logits)});
  });
}

}  // namespace fourfold::kernels
