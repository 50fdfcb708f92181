// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/element.hpp"

#include <fourfold/kernels/cross_entropy.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fourfold::kernels::reference {
namespace {

/// log(sum(exp(row))) over the first `vocabulary` columns of row t.
double log_sum_exp(ConstTensorView logits_TV, std::int64_t t, std::int64_t vocabulary) {
  const std::int64_t first = t * logits_TV.dim(1);
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t v = 0; v < vocabulary; ++v) {
    largest = std::max(largest, read_element(logits_TV, first + v));
  }
  double sum = 0;
  for (std::int64_t v = 0; v < vocabulary; ++v) {
    sum += std::exp(read_element(logits_TV, first + v) - largest);
  }
  return largest + std::log(sum);
}

}  // namespace

void cross_entropy_forward_backward(TensorView logits_TV, ConstTensorView target_T,
                                    TensorView loss_T, std::int64_t vocabulary,
                                    float gradient_scale, device::StreamRef stream) {
  reference::cross_entropy(logits_TV, target_T, loss_T, vocabulary, stream);
  const std::int64_t columns = logits_TV.dim(1);
  for (std::int64_t t = 0; t < logits_TV.dim(0); ++t) {
    const std::int32_t target = target_T.as<std::int32_t>()[t];
    const double lse = log_sum_exp(logits_TV, t, vocabulary);
    for (std::int64_t v = 0; v < columns; ++v) {
      const std::int64_t at = t * columns + v;
      double gradient = 0;
      if (v < vocabulary && target != ignored_target) {
        gradient = std::exp(read_element(logits_TV, at) - lse);
        gradient = gradient_scale * (gradient - (v == target ? 1.0 : 0.0));
      }
      write_element(logits_TV, at, gradient);
    }
  }
}

void cross_entropy(ConstTensorView logits_TV, ConstTensorView target_T, TensorView loss_T,
                   std::int64_t vocabulary, device::StreamRef /*stream*/) {
  for (std::int64_t t = 0; t < logits_TV.dim(0); ++t) {
    const std::int32_t target = target_T.as<std::int32_t>()[t];
    double loss = 0;
    if (target != ignored_target) {
      loss = log_sum_exp(logits_TV, t, vocabulary) -
             read_element(logits_TV, t * logits_TV.dim(1) + target);
    }
    write_element(loss_T, t, loss);
  }
}

}  // namespace fourfold::kernels::reference
