// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The classifier on a device: a team per row (softmax_row.hpp).
#include "softmax_row.hpp"
#include "storage.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/cross_entropy.hpp>

#include <cmath>
#include <limits>

namespace fourfold::kernels {
namespace {

template <class T, bool with_gradient>
struct CrossEntropy {
  const T* logits_TV;
  T* gradient_TV;  // logits_TV again, or nullptr
  const std::int32_t* target_T;
  float* loss_T;
  int columns;
  int vocabulary;
  float gradient_scale;
  bool whole;

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    SoftmaxThreads threads(team);
    const std::int64_t t = team.league_rank();
    const std::int32_t target = target_T[t];
    if (target == ignored_target) {
      threads.once([&] { loss_T[t] = 0; });
      if constexpr (with_gradient) {
        clear_row(threads, gradient_TV + t * columns, columns, whole);
      }
      return;
    }
    const T* const row = logits_TV + t * columns;
    const float target_logit = to_float(row[target]);  // before anyone writes: behind the barriers
    const SoftmaxSum all = sum_logits(threads, row, vocabulary, whole);
    threads.once([&] { loss_T[t] = std::log(all.sum) + (all.largest - target_logit); });
    if constexpr (with_gradient) {
      T* const gradient = gradient_TV + t * columns;
      const float factor = gradient_scale / all.sum;
      write_softmax(threads, gradient, columns, vocabulary, all.largest, factor, whole);
      if (is_mine<T>(threads, target)) {
        const float softmax = fast_exp_minus(all.largest - target_logit) * factor;
        store(gradient[target], softmax - gradient_scale);
      }
    }
  }
};

template <class T, bool with_gradient>
void take_rows(ConstTensorView logits_TV, T* gradient_TV, ConstTensorView target_T,
               TensorView loss_T, std::int64_t vocabulary, float gradient_scale,
               device::StreamRef stream) {
  const T* const logits = logits_TV.as<T>();
  for_teams<softmax_warps, softmax_teams>(
      "cross_entropy", logits_TV.dim(0), SoftmaxThreads::team_bytes, stream,
      CrossEntropy<T, with_gradient>{logits, gradient_TV, target_T.as<std::int32_t>(),
                                     loss_T.as<float>(), static_cast<int>(logits_TV.dim(1)),
                                     static_cast<int>(vocabulary), gradient_scale,
                                     in_packs(logits_TV.dim(1), logits)});
}

void expect_operands(ConstTensorView logits_TV, ConstTensorView target_T, ConstTensorView loss_T,
                     std::int64_t vocabulary) {
  FOURFOLD_EXPECT(logits_TV.shape().rank() == 2);
  FOURFOLD_EXPECT(vocabulary > 0 && vocabulary <= logits_TV.dim(1));
  FOURFOLD_EXPECT(logits_TV.dim(1) <= std::numeric_limits<int>::max() / 2);
  FOURFOLD_EXPECT(target_T.elements() == logits_TV.dim(0));
  FOURFOLD_EXPECT(loss_T.elements() == logits_TV.dim(0));
}

}  // namespace

void cross_entropy_forward_backward(TensorView logits_TV, ConstTensorView target_T,
                                    TensorView loss_T, std::int64_t vocabulary,
                                    float gradient_scale, device::StreamRef stream) {
  expect_operands(logits_TV, target_T, loss_T, vocabulary);
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    take_rows<T, true>(logits_TV, logits_TV.as<T>(), target_T, loss_T, vocabulary, gradient_scale,
                       stream);
  });
}

void cross_entropy(ConstTensorView logits_TV, ConstTensorView target_T, TensorView loss_T,
                   std::int64_t vocabulary, device::StreamRef stream) {
  expect_operands(logits_TV, target_T, loss_T, vocabulary);
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    take_rows<T, false>(logits_TV, nullptr, target_T, loss_T, vocabulary, 0.0F, stream);
  });
}

}  // namespace fourfold::kernels
