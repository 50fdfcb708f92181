// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/storage.hpp"

#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/norm.hpp>

#include <cmath>

namespace fourfold::kernels::reference {
namespace {

/// Mean of term(d) over [0, count).
template <class Term>
double mean_over(std::int64_t count, const Term& term) {
  double sum = 0;
  for (std::int64_t d = 0; d < count; ++d) {
    sum += term(d);
  }
  return sum / static_cast<double>(count);
}

/// dx_d += rstd * (g_d - mean(g) - xhat_d * mean(g * xhat)), the gradient through a normalised row;
/// an rms_norm has no mean(g) term.
void add_row_gradient(ConstTensorView dy_TD, ConstTensorView x_TD, ConstTensorView weight_D,
                      std::int64_t t, double mean, double rstd, bool centred, TensorView dx_TD) {
  const std::int64_t features = x_TD.dim(1);
  const auto g = [&](std::int64_t d) {
    return read_element(dy_TD, t * features + d) * read_element(weight_D, d);
  };
  const double mean_g = centred ? mean_over(features, g) : 0.0;
  const double mean_g_xhat = mean_over(features, [&](std::int64_t d) {
    return g(d) * (read_element(x_TD, t * features + d) - mean) * rstd;
  });
  for (std::int64_t d = 0; d < features; ++d) {
    const std::int64_t at = t * features + d;
    const double xhat = (read_element(x_TD, at) - mean) * rstd;
    write_element(dx_TD, at, read_element(dx_TD, at) + rstd * (g(d) - mean_g - xhat * mean_g_xhat));
  }
}

}  // namespace

void layer_norm(ConstTensorView x_TD, ConstTensorView weight_D, ConstTensorView bias_D,
                TensorView y_TD, TensorView mean_T, TensorView rstd_T, float epsilon,
                device::StreamRef /*stream*/) {
  const std::int64_t features = x_TD.dim(1);
  for (std::int64_t t = 0; t < x_TD.dim(0); ++t) {
    const auto x = [&](std::int64_t d) { return read_element(x_TD, t * features + d); };
    const double mean = mean_over(features, x);
    const double variance =
        mean_over(features, [&](std::int64_t d) { return std::pow(x(d) - mean, 2); });
    const double rstd = 1.0 / std::sqrt(variance + epsilon);
    for (std::int64_t d = 0; d < features; ++d) {
      write_element(y_TD, t * features + d,
                    (x(d) - mean) * rstd * read_element(weight_D, d) + read_element(bias_D, d));
    }
    write_element(mean_T, t, mean);
    write_element(rstd_T, t, rstd);
  }
}

void add_layer_norm(ConstTensorView x_TD, ConstTensorView residual_TD, ConstTensorView weight_D,
                    ConstTensorView bias_D, TensorView sum_TD, TensorView y_TD, TensorView mean_T,
                    TensorView rstd_T, float epsilon, device::StreamRef stream) {
  reference::add(x_TD, residual_TD, sum_TD, stream);
  reference::layer_norm(sum_TD, weight_D, bias_D, y_TD, mean_T, rstd_T, epsilon, stream);
}

void layer_norm_backward(ConstTensorView dy_TD, ConstTensorView x_TD, ConstTensorView weight_D,
                         ConstTensorView mean_T, ConstTensorView rstd_T, TensorView dx_TD,
                         TensorView dweight_D, TensorView dbias_D, device::StreamRef /*stream*/) {
  const std::int64_t features = x_TD.dim(1);
  for (std::int64_t d = 0; d < features; ++d) {
    double dweight = 0;
    double dbias = 0;
    for (std::int64_t t = 0; t < x_TD.dim(0); ++t) {
      const double dy = read_element(dy_TD, t * features + d);
      dweight += dy * (read_element(x_TD, t * features + d) - read_element(mean_T, t)) *
                 read_element(rstd_T, t);
      dbias += dy;
    }
    dweight_D.as<float>()[d] += static_cast<float>(dweight);
    dbias_D.as<float>()[d] += static_cast<float>(dbias);
  }
  for (std::int64_t t = 0; t < x_TD.dim(0); ++t) {
    add_row_gradient(dy_TD, x_TD, weight_D, t, read_element(mean_T, t), read_element(rstd_T, t),
                     true, dx_TD);
  }
}

void rms_norm(ConstTensorView x_TD, ConstTensorView weight_D, TensorView y_TD, TensorView rstd_T,
              float epsilon, device::StreamRef /*stream*/) {
  const std::int64_t features = x_TD.dim(1);
  for (std::int64_t t = 0; t < x_TD.dim(0); ++t) {
    const auto x = [&](std::int64_t d) { return read_element(x_TD, t * features + d); };
    const double mean_square =
        mean_over(features, [&](std::int64_t d) { return std::pow(x(d), 2); });
    const double rstd = 1.0 / std::sqrt(mean_square + epsilon);
    for (std::int64_t d = 0; d < features; ++d) {
      write_element(y_TD, t * features + d, x(d) * rstd * read_element(weight_D, d));
    }
    write_element(rstd_T, t, rstd);
  }
}

void add_rms_norm(ConstTensorView x_TD, ConstTensorView residual_TD, ConstTensorView weight_D,
                  TensorView sum_TD, TensorView y_TD, TensorView rstd_T, float epsilon,
                  device::StreamRef stream) {
  reference::add(x_TD, residual_TD, sum_TD, stream);
  reference::rms_norm(sum_TD, weight_D, y_TD, rstd_T, epsilon, stream);
}

void rms_norm_backward(ConstTensorView dy_TD, ConstTensorView x_TD, ConstTensorView weight_D,
                       ConstTensorView rstd_T, TensorView dx_TD, TensorView dweight_D,
                       device::StreamRef /*stream*/) {
  const std::int64_t features = x_TD.dim(1);
  for (std::int64_t d = 0; d < features; ++d) {
    double dweight = 0;
    for (std::int64_t t = 0; t < x_TD.dim(0); ++t) {
      const std::int64_t at = t * features + d;
      dweight += read_element(dy_TD, at) * read_element(x_TD, at) * read_element(rstd_T, t);
    }
    dweight_D.as<float>()[d] += static_cast<float>(dweight);
  }
  for (std::int64_t t = 0; t < x_TD.dim(0); ++t) {
    add_row_gradient(dy_TD, x_TD, weight_D, t, 0.0, read_element(rstd_T, t), false, dx_TD);
  }
}

}  // namespace fourfold::kernels::reference
