// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The classifier on a device, and a part of it: a team per row (softmax_row_device.hpp).
#include "cross_entropy_backend.hpp"
#include "softmax_row_device.hpp"
#include "vectors/storage.hpp"

#include <cmath>

namespace fourfold::kernels {
namespace {

template <class T, bool whole, bool with_gradient>
struct CrossEntropy {
  const T* logits_TV;
  T* gradient_TV;
  const std::int32_t* target_T;
  float* loss_T;
  int columns;
  int vocabulary;
  float gradient_scale;

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    SoftmaxThreads threads(team);
    const std::int64_t t = team.league_rank();
    const std::int32_t target = target_T[t];
    if (target == ignored_target) {
      threads.once([&] { loss_T[t] = 0; });
      if constexpr (with_gradient) {
        clear_row<whole>(threads, gradient_TV + t * columns, columns);
      }
      return;
    }
    const T* const row = logits_TV + t * columns;
    const float target_logit = to_float(row[target]);  // before anyone writes: after the barriers
    const SoftmaxSum all = sum_logits<whole>(threads, row, vocabulary);
    threads.once([&] { loss_T[t] = std::log(all.sum) + (all.largest - target_logit); });
    if constexpr (with_gradient) {
      T* const gradient = gradient_TV + t * columns;
      const float factor = gradient_scale / all.sum;
      write_softmax<whole>(threads, gradient, columns, vocabulary, all.largest, factor);
      if (is_mine<T>(threads, target)) {
        const float softmax = fast_exp_minus(all.largest - target_logit) * factor;
        store(gradient[target], softmax - gradient_scale);
      }
    }
  }
};

template <class T, bool whole>
struct Part {
  const T* logits_TV;
  const std::int32_t* target_T;
  float* statistics_T3;
  std::int64_t first_column;
  int columns;

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    SoftmaxThreads threads(team);
    const std::int64_t t = team.league_rank();
    const T* const row = logits_TV + t * columns;
    const SoftmaxSum all = sum_logits<whole>(threads, row, columns);
    threads.once([&] {
      const std::int64_t target = target_T[t] - first_column;
      float* const statistics = statistics_T3 + t * part_statistics;
      statistics[0] = all.largest;
      statistics[1] = all.sum;
      statistics[2] = target >= 0 && target < columns ? to_float(row[target]) : 0.0F;
    });
  }
};

template <class T, bool whole>
struct PartGradient {
  T* logits_TV;
  const std::int32_t* target_T;
  const float* normaliser_T2;
  std::int64_t first_column;
  int columns;
  float gradient_scale;

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    const SoftmaxThreads threads(team);
    const std::int64_t t = team.league_rank();
    T* const row = logits_TV + t * columns;
    if (target_T[t] == ignored_target) {
      clear_row<whole>(threads, row, columns);
      return;
    }
    const float largest = normaliser_T2[2 * t];
    const float factor = gradient_scale * normaliser_T2[2 * t + 1];
    const std::int64_t target = target_T[t] - first_column;
    // Read and written by one thread: nobody waits for the others here.
    const bool is_here = target >= 0 && target < columns && is_mine<T>(threads, target);
    const float target_logit = is_here ? to_float(row[target]) : 0.0F;
    write_softmax<whole>(threads, row, columns, columns, largest, factor);
    if (is_here) {
      store(row[target], fast_exp_minus(largest - target_logit) * factor - gradient_scale);
    }
  }
};

}  // namespace

void classify_rows(ConstTensorView logits_TV, void* gradient_TV, ConstTensorView target_T,
                   TensorView loss_T, int vocabulary, float gradient_scale,
                   device::StreamRef stream) {
  const std::int64_t rows = logits_TV.dim(0);
  const int columns = row_length(logits_TV.dim(1));
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    const auto classify = [&]<bool whole, bool with_gradient>() {
      for_softmax_rows(
          "cross_entropy", rows, stream,
          CrossEntropy<T, whole, with_gradient>{logits_TV.as<T>(), static_cast<T*>(gradient_TV),
                                                target_T.as<std::int32_t>(), loss_T.as<float>(),
                                                columns, vocabulary, gradient_scale});
    };
    if (in_packs(columns, logits_TV.as<T>())) {
      gradient_TV == nullptr ? classify.template operator()<true, false>()
                             : classify.template operator()<true, true>();
    } else {
      gradient_TV == nullptr ? classify.template operator()<false, false>()
                             : classify.template operator()<false, true>();
    }
  });
}

void classify_part_rows(ConstTensorView logits_TV, std::int64_t first_column,
                        ConstTensorView target_T, TensorView statistics_T3,
                        device::StreamRef stream) {
  const int columns = row_length(logits_TV.dim(1));
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    const auto classify = [&]<bool whole>() {
      for_softmax_rows("cross_entropy_part", logits_TV.dim(0), stream,
                       Part<T, whole>{logits_TV.as<T>(), target_T.as<std::int32_t>(),
                                      statistics_T3.as<float>(), first_column, columns});
    };
    in_packs(columns, logits_TV.as<T>()) ? classify.template operator()<true>()
                                         : classify.template operator()<false>();
  });
}

void differentiate_part_rows(TensorView logits_TV, std::int64_t first_column,
                             ConstTensorView target_T, ConstTensorView normaliser_T2,
                             float gradient_scale, device::StreamRef stream) {
  const int columns = row_length(logits_TV.dim(1));
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    const auto differentiate = [&]<bool whole>() {
      for_softmax_rows(
          "cross_entropy_grad", logits_TV.dim(0), stream,
          PartGradient<T, whole>{logits_TV.as<T>(), target_T.as<std::int32_t>(),
                                 normaliser_T2.as<float>(), first_column, columns, gradient_scale});
    };
    in_packs(columns, logits_TV.as<T>()) ? differentiate.template operator()<true>()
                                         : differentiate.template operator()<false>();
  });
}

}  // namespace fourfold::kernels
