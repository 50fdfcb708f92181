// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The classifier on a device: a team per row (softmax_row_device.hpp).
#include "cross_entropy_backend.hpp"
#include "softmax_row_device.hpp"
#include "vectors/storage.hpp"

#include <fourfold/kernels/cross_entropy.hpp>

#include <cmath>

namespace fourfold::kernels {
namespace {

template <class T, bool whole, bool with_gradient>
struct CrossEntropy {
  LossOperands<T> with;

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    SoftmaxThreads threads(team);
    const std::int64_t t = team.league_rank();
    const std::int32_t target = with.target_T[t];
    if (target == ignored_target) {
      threads.once([&] { with.loss_T[t] = 0; });
      if constexpr (with_gradient) {
        clear_row<whole>(threads, with.gradient_TV + t * with.columns, with.columns);
      }
      return;
    }
    const T* const row = with.logits_TV + t * with.columns;
    const float target_logit = to_float(row[target]);  // before anyone writes: after the barriers
    const SoftmaxSum all = sum_logits<whole>(threads, row, with.vocabulary);
    threads.once([&] { with.loss_T[t] = std::log(all.sum) + (all.largest - target_logit); });
    if constexpr (with_gradient) {
      T* const gradient = with.gradient_TV + t * with.columns;
      const float factor = with.gradient_scale / all.sum;
      write_softmax<whole>(threads, gradient, with.columns, with.vocabulary, all.largest, factor);
      if (is_mine<T>(threads, target)) {
        const float softmax = fast_exp_minus(all.largest - target_logit) * factor;
        store(gradient[target], softmax - with.gradient_scale);
      }
    }
  }
};

}  // namespace

template <class T, bool with_gradient>
void cross_entropy_rows(const LossOperands<T>& with, device::StreamRef stream) {
  constexpr auto label = "cross_entropy";
  if (in_packs(with.columns, with.logits_TV)) {
    for_softmax_rows(label, with.rows, stream, CrossEntropy<T, true, with_gradient>{with});
  } else {
    for_softmax_rows(label, with.rows, stream, CrossEntropy<T, false, with_gradient>{with});
  }
}
template void cross_entropy_rows<float, false>(const LossOperands<float>&, device::StreamRef);
template void cross_entropy_rows<float, true>(const LossOperands<float>&, device::StreamRef);
template void cross_entropy_rows<BFloat16, false>(const LossOperands<BFloat16>&, device::StreamRef);
template void cross_entropy_rows<BFloat16, true>(const LossOperands<BFloat16>&, device::StreamRef);
template void cross_entropy_rows<Float16, false>(const LossOperands<Float16>&, device::StreamRef);
template void cross_entropy_rows<Float16, true>(const LossOperands<Float16>&, device::StreamRef);

}  // namespace fourfold::kernels
