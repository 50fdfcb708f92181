// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"
#include "storage.hpp"

#include <fourfold/kernels/optimizer.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>
#include <limits>
#include <type_traits>

namespace fourfold::kernels {
namespace {

/// In place of a weight's element type: master itself is what the products read.
struct NoWeight {};

/// Calls body(pointer, keeps) with the weight's storage type, or with a pointer that nothing is
/// stored to; and whether master and moments are stored.
template <class Body>
void with_weight(TensorView weight, bool tries, const Body& body) {
  FOURFOLD_EXPECT(weight || !tries);
  if (!weight) {
    body(static_cast<NoWeight*>(nullptr), std::true_type{});
    return;
  }
  with_storage(weight.dtype(), [&]<class W>(W) {
    if (tries) {
      body(weight.as<W>(), std::false_type{});
    } else {
      body(weight.as<W>(), std::true_type{});
    }
  });
}

template <class W, bool keeps>
struct Adam {
  float* master;
  float* exp_avg;
  float* exp_avg_sq;
  const float* gradient;
  W* weight;
  const float* gradient_scale;  ///< or nullptr
  float keep;                   ///< 1 - lr * weight_decay when decoupled, else 1
  float coupled_decay;          ///< weight_decay when not decoupled, else 0
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float step_size;               ///< lr / (1 - beta1^step)
  float v_hat_root_over_v_root;  ///< 1 / sqrt(1 - beta2^step)
  float epsilon;

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    const float scale = gradient_scale != nullptr ? *gradient_scale : 1.0F;
    if (!std::isfinite(scale)) {
      return;
    }
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      const float p = master[i] * keep;
      const float g = gradient[i] * scale + coupled_decay * p;
      const float m = exp_avg[i] + one_minus_beta1 * (g - exp_avg[i]);
      const float v = beta2 * exp_avg_sq[i] + one_minus_beta2 * g * g;
      const float root = std::sqrt(v) * v_hat_root_over_v_root + epsilon;
      const float updated = p - step_size * (m / root);
      if constexpr (keeps) {
        exp_avg[i] = m;
        exp_avg_sq[i] = v;
        master[i] = updated;
      }
      if constexpr (!std::is_same_v<W, NoWeight>) {
        store(weight[i], updated);
      }
    }
  }
};

template <class W, bool with_momentum, bool keeps>
struct Sgd {
  float* master;
  float* momentum_buffer;  ///< nullptr without momentum
  const float* gradient;
  W* weight;
  const float* gradient_scale;  ///< or nullptr
  float lr;
  float momentum;
  float weight_decay;

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    const float scale = gradient_scale != nullptr ? *gradient_scale : 1.0F;
    if (!std::isfinite(scale)) {
      return;
    }
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      float step = gradient[i] * scale + weight_decay * master[i];
      if constexpr (with_momentum) {
        step += momentum * momentum_buffer[i];
      }
      const float updated = master[i] - lr * step;
      if constexpr (keeps) {
        master[i] = updated;
      }
      if constexpr (keeps && with_momentum) {
        momentum_buffer[i] = step;
      }
      if constexpr (!std::is_same_v<W, NoWeight>) {
        store(weight[i], updated);
      }
    }
  }
};

struct OuterNesterov {
  float* outer;
  float* velocity;
  float* master;
  float lr;
  float momentum;

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      const float delta = outer[i] - master[i];
      const float v = momentum * velocity[i] + delta;
      const float updated = outer[i] - lr * (delta + momentum * v);
      velocity[i] = v;
      outer[i] = updated;
      master[i] = updated;
    }
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

void adam(const AdamStep& step, TensorView master, TensorView exp_avg, TensorView exp_avg_sq,
          ConstTensorView gradient, TensorView weight, device::StreamRef stream) {
  FOURFOLD_EXPECT(step.step >= 1);
  FOURFOLD_EXPECT(exp_avg.elements() == master.elements());
  FOURFOLD_EXPECT(exp_avg_sq.elements() == master.elements());
  FOURFOLD_EXPECT(gradient.elements() == master.elements());
  FOURFOLD_EXPECT(!weight || weight.elements() == master.elements());
  const double lr = step.lr;
  const double decay = step.weight_decay;
  const double correction1 = 1.0 - std::pow(step.beta1, static_cast<double>(step.step));
  const double correction2 = 1.0 - std::pow(step.beta2, static_cast<double>(step.step));
  with_weight(weight, step.tries, [&]<class W, bool keeps>(W* copy, std::bool_constant<keeps>) {
    for_each_block(
        "adam", master.elements(), step.place, stream,
        Adam<W, keeps>{.master = master.as<float>(),
                       .exp_avg = exp_avg.as<float>(),
                       .exp_avg_sq = exp_avg_sq.as<float>(),
                       .gradient = gradient.as<float>(),
                       .weight = copy,
                       .gradient_scale = step.gradient_scale,
                       .keep = step.decoupled ? static_cast<float>(1.0 - lr * decay) : 1.0F,
                       .coupled_decay = step.decoupled ? 0.0F : step.weight_decay,
                       .one_minus_beta1 = static_cast<float>(1.0 - step.beta1),
                       .beta2 = static_cast<float>(step.beta2),
                       .one_minus_beta2 = static_cast<float>(1.0 - step.beta2),
                       .step_size = static_cast<float>(lr / correction1),
                       .v_hat_root_over_v_root = static_cast<float>(1.0 / std::sqrt(correction2)),
                       .epsilon = step.epsilon});
  });
}

void sgd(const SgdStep& step, TensorView master, TensorView momentum_buffer,
         ConstTensorView gradient, TensorView weight, device::StreamRef stream) {
  FOURFOLD_EXPECT(gradient.elements() == master.elements());
  FOURFOLD_EXPECT(momentum_buffer ? momentum_buffer.elements() == master.elements()
                                  : step.momentum == 0);
  FOURFOLD_EXPECT(!weight || weight.elements() == master.elements());
  with_weight(weight, step.tries, [&]<class W, bool keeps>(W* copy, std::bool_constant<keeps>) {
    if (momentum_buffer) {
      for_each_block("sgd", master.elements(), step.place, stream,
                     Sgd<W, true, keeps>{master.as<float>(), momentum_buffer.as<float>(),
                                         gradient.as<float>(), copy, step.gradient_scale, step.lr,
                                         step.momentum, step.weight_decay});
    } else {
      for_each_block("sgd", master.elements(), step.place, stream,
                     Sgd<W, false, keeps>{master.as<float>(), nullptr, gradient.as<float>(), copy,
                                          step.gradient_scale, step.lr, 0.0F, step.weight_decay});
    }
  });
}

void outer_nesterov(const OuterStep& step, TensorView outer, TensorView velocity, TensorView master,
                    device::StreamRef stream) {
  FOURFOLD_EXPECT(outer.elements() == master.elements());
  FOURFOLD_EXPECT(velocity.elements() == master.elements());
  for_each_block("outer_nesterov", master.elements(), step.place, stream,
                 OuterNesterov{outer.as<float>(), velocity.as<float>(), master.as<float>(), step.lr,
                               step.momentum});
}

void void_scale(ConstTensorView norm, TensorView scale, device::StreamRef stream) {
  for_each("void_scale", 1, stream, VoidScale{norm.as<float>(), scale.as<float>()});
}

}  // namespace fourfold::kernels
