// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/kernels/reference/gradient_scale.hpp>

#include <algorithm>
#include <cmath>

namespace fourfold::kernels::reference {

void clip_scale(ConstTensorView sum_of_squares, float max_norm, float loss_scale, TensorView norm,
                TensorView scale, device::StreamRef /*stream*/) {
  const double length = std::sqrt(*sum_of_squares.as<double>()) / static_cast<double>(loss_scale);
  *norm.as<float>() = static_cast<float>(length);
  if (!std::isfinite(*norm.as<float>())) {
    *scale.as<float>() = std::nanf("");
    return;
  }
  const double factor =
      max_norm > 0 ? std::min(1.0, static_cast<double>(max_norm) / (length + 1e-6)) : 1.0;
  *scale.as<float>() = static_cast<float>(factor / static_cast<double>(loss_scale));
}

void void_scale(ConstTensorView norm, TensorView scale, device::StreamRef /*stream*/) {
  if (!std::isfinite(*norm.as<float>())) {
    *scale.as<float>() = std::nanf("");
  }
}

}  // namespace fourfold::kernels::reference
