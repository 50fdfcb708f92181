// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/optimizer.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>
#include <limits>

namespace fourfold::kernels {
namespace {

struct ClipScale {
  const double* sum_of_squares;
  float max_norm;
  float loss_scale;
  float* norm;
  float* scale;
  KOKKOS_FUNCTION void operator()(std::int64_t /*only*/) const {
    const double length = std::sqrt(*sum_of_squares) / loss_scale;
    const double factor = max_norm / (length + 1e-6);
    const double clipped = max_norm > 0 && factor < 1.0 ? factor : 1.0;
    *norm = static_cast<float>(length);
    // The norm as the host will see it, so that both come to the same conclusion.
    *scale = std::isfinite(*norm) ? static_cast<float>(clipped / loss_scale)
                                  : std::numeric_limits<float>::quiet_NaN();
  }
};

struct VoidScale {
  const float* norm;
  float* scale;
  KOKKOS_FUNCTION void operator()(std::int64_t /*only*/) const {
    if (!std::isfinite(*norm)) {
      *scale = std::numeric_limits<float>::quiet_NaN();
    }
  }
};

}  // namespace

void clip_scale(ConstTensorView sum_of_squares, float max_norm, float loss_scale, TensorView norm,
                TensorView scale, device::StreamRef stream) {
  FOURFOLD_EXPECT(loss_scale > 0);
  for_each("clip_scale", 1, stream,
           ClipScale{sum_of_squares.as<double>(), max_norm, loss_scale, norm.as<float>(),
                     scale.as<float>()});
}

void void_scale(ConstTensorView norm, TensorView scale, device::StreamRef stream) {
  for_each("void_scale", 1, stream, VoidScale{norm.as<float>(), scale.as<float>()});
}

}  // namespace fourfold::kernels
