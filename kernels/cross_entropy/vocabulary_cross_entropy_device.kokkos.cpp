// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A part of the classifier on a device: a team per row (softmax_row_device.hpp).
#include "cross_entropy_backend.hpp"
#include "softmax_row_device.hpp"
#include "vectors/storage.hpp"

#include <fourfold/kernels/cross_entropy.hpp>

namespace fourfold::kernels {
namespace {

template <class T, bool whole>
struct Part {
  LossPartOperands<T> with;

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    SoftmaxThreads threads(team);
    const std::int64_t t = team.league_rank();
    const T* const row = with.logits_TV + t * with.columns;
    const SoftmaxSum all = sum_logits<whole>(threads, row, with.columns);
    threads.once([&] {
      const std::int64_t target = with.target_T[t] - with.first_column;
      float* const statistics = with.statistics_T3 + t * part_statistics;
      statistics[0] = all.largest;
      statistics[1] = all.sum;
      statistics[2] = target >= 0 && target < with.columns ? to_float(row[target]) : 0.0F;
    });
  }
};

template <class T, bool whole>
struct PartGradient {
  LossPartGradient<T> with;

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    const SoftmaxThreads threads(team);
    const std::int64_t t = team.league_rank();
    T* const row = with.logits_TV + t * with.columns;
    if (with.target_T[t] == ignored_target) {
      clear_row<whole>(threads, row, with.columns);
      return;
    }
    const float largest = with.normaliser_T2[2 * t];
    const float factor = with.gradient_scale * with.normaliser_T2[2 * t + 1];
    const std::int64_t target = with.target_T[t] - with.first_column;
    // Read and written by one thread: nobody waits for the others here.
    const bool is_here = target >= 0 && target < with.columns && is_mine<T>(threads, target);
    const float target_logit = is_here ? to_float(row[target]) : 0.0F;
    write_softmax<whole>(threads, row, with.columns, with.columns, largest, factor);
    if (is_here) {
      store(row[target], fast_exp_minus(largest - target_logit) * factor - with.gradient_scale);
    }
  }
};

}  // namespace

template <class T>
void cross_entropy_part_rows(const LossPartOperands<T>& with, device::StreamRef stream) {
  constexpr auto label = "cross_entropy_part";
  if (in_packs(with.columns, with.logits_TV)) {
    for_softmax_rows(label, with.rows, stream, Part<T, true>{with});
  } else {
    for_softmax_rows(label, with.rows, stream, Part<T, false>{with});
  }
}
template void cross_entropy_part_rows(const LossPartOperands<float>&, device::StreamRef);
template void cross_entropy_part_rows(const LossPartOperands<BFloat16>&, device::StreamRef);
template void cross_entropy_part_rows(const LossPartOperands<Float16>&, device::StreamRef);

template <class T>
void cross_entropy_part_gradient_rows(const LossPartGradient<T>& with, device::StreamRef stream) {
  constexpr auto label = "cross_entropy_grad";
  if (in_packs(with.columns, static_cast<const T*>(with.logits_TV))) {
    for_softmax_rows(label, with.rows, stream, PartGradient<T, true>{with});
  } else {
    for_softmax_rows(label, with.rows, stream, PartGradient<T, false>{with});
  }
}
template void cross_entropy_part_gradient_rows(const LossPartGradient<float>&, device::StreamRef);
template void cross_entropy_part_gradient_rows(const LossPartGradient<BFloat16>&,
                                               device::StreamRef);
template void cross_entropy_part_gradient_rows(const LossPartGradient<Float16>&, device::StreamRef);

}  // namespace fourfold::kernels
