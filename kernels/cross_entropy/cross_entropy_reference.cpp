// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/storage.hpp"

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

void cross_entropy_part(ConstTensorView logits_TV, std::int64_t first_column,
                        ConstTensorView target_T, TensorView statistics_T3,
                        device::StreamRef /*stream*/) {
  const std::int64_t columns = logits_TV.dim(1);
  for (std::int64_t t = 0; t < logits_TV.dim(0); ++t) {
    double largest = std::numeric_limits<float>::lowest();
    for (std::int64_t v = 0; v < columns; ++v) {
      largest = std::max(largest, read_element(logits_TV, t * columns + v));
    }
    double sum = 0;
    for (std::int64_t v = 0; v < columns; ++v) {
      sum += std::exp(read_element(logits_TV, t * columns + v) - largest);
    }
    const std::int64_t target = target_T.as<std::int32_t>()[t] - first_column;
    const bool here = target >= 0 && target < columns;
    write_element(statistics_T3, 3 * t, largest);
    write_element(statistics_T3, 3 * t + 1, sum);
    write_element(statistics_T3, 3 * t + 2,
                  here ? read_element(logits_TV, t * columns + target) : 0.0);
  }
}

void cross_entropy_join(ConstTensorView statistics_PT3, ConstTensorView target_T, TensorView loss_T,
                        TensorView normaliser_T2, device::StreamRef /*stream*/) {
  const std::int64_t parts = statistics_PT3.dim(0);
  const std::int64_t tokens = statistics_PT3.dim(1);
  const auto statistic = [&](std::int64_t part, std::int64_t t, std::int64_t which) {
    return read_element(statistics_PT3, (part * tokens + t) * 3 + which);
  };
  for (std::int64_t t = 0; t < tokens; ++t) {
    double largest = std::numeric_limits<float>::lowest();
    double target_logit = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      largest = std::max(largest, statistic(part, t, 0));
      target_logit += statistic(part, t, 2);
    }
    double sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      sum += statistic(part, t, 1) * std::exp(statistic(part, t, 0) - largest);
    }
    const bool counts = target_T.as<std::int32_t>()[t] != ignored_target;
    write_element(loss_T, t, counts ? std::log(sum) + largest - target_logit : 0.0);
    write_element(normaliser_T2, 2 * t, counts ? largest : 0.0);
    write_element(normaliser_T2, 2 * t + 1, counts ? 1.0 / sum : 0.0);
  }
}

void cross_entropy_part_gradient(TensorView logits_TV, std::int64_t first_column,
                                 ConstTensorView target_T, ConstTensorView normaliser_T2,
                                 float gradient_scale, device::StreamRef /*stream*/) {
  const std::int64_t columns = logits_TV.dim(1);
  for (std::int64_t t = 0; t < logits_TV.dim(0); ++t) {
    const std::int32_t target = target_T.as<std::int32_t>()[t];
    const double largest = read_element(normaliser_T2, 2 * t);
    const double reciprocal = read_element(normaliser_T2, 2 * t + 1);
    for (std::int64_t v = 0; v < columns; ++v) {
      const std::int64_t at = t * columns + v;
      double gradient = 0;
      if (target != ignored_target) {
        gradient = std::exp(read_element(logits_TV, at) - largest) * reciprocal;
        gradient = gradient_scale * (gradient - (first_column + v == target ? 1.0 : 0.0));
      }
      write_element(logits_TV, at, gradient);
    }
  }
}

}  // namespace fourfold::kernels::reference
