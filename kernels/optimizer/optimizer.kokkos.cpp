// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/for_each_pack.hpp"
#include "weight_copy.hpp"

#include <fourfold/kernels/optimizer.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>
#include <limits>
#include <type_traits>

namespace fourfold::kernels {
namespace {

/// What gradients are multiplied by; not finite where there is to be no update.
KOKKOS_FORCEINLINE_FUNCTION float scale_of(const float* gradient_scale) {
  return gradient_scale != nullptr ? *gradient_scale : 1.0F;
}

constexpr int run = pack_elements<float>;

template <class Copy>
struct Adam {
  float* master;
  float* exp_avg;
  float* exp_avg_sq;
  const float* gradient;
  Copy copy;
  const float* gradient_scale;  ///< or nullptr
  float keep;                   ///< 1 - lr * weight_decay when decoupled, else 1
  float coupled_decay;          ///< weight_decay when not decoupled, else 0
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float step_size;               ///< lr / (1 - beta1^step)
  float v_hat_root_over_v_root;  ///< 1 / sqrt(1 - beta2^step)
  float epsilon;

  KOKKOS_FORCEINLINE_FUNCTION void update(float scaled_gradient, float& p, float& m,
                                          float& v) const {
    p = p * keep;
    const float g = scaled_gradient + coupled_decay * p;
    m = m + one_minus_beta1 * (g - m);
    v = beta2 * v + one_minus_beta2 * g * g;
    const float root = std::sqrt(v) * v_hat_root_over_v_root + epsilon;
    p = p - step_size * (m / root);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    const float scale = scale_of(gradient_scale);
    if (!std::isfinite(scale)) {
      return;
    }
    for_each_copied(copy, begin, end, [this, scale](std::int64_t i, std::uint32_t bits) {
      float p = master[i];
      float m = exp_avg[i];
      float v = exp_avg_sq[i];
      update(gradient[i] * scale, p, m, v);
      exp_avg[i] = m;
      exp_avg_sq[i] = v;
      master[i] = p;
      copy.put(i, p, bits);
    });
  }

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    const float scale = scale_of(gradient_scale);
    if (!std::isfinite(scale)) {
      return;
    }
    float p[n];
    float m[n];
    float v[n];
    float g[n];
    load<n>(master + first, p);
    load<n>(exp_avg + first, m);
    load<n>(exp_avg_sq + first, v);
    load<n>(gradient + first, g);
    for (int i = 0; i < n; ++i) {
      update(g[i] * scale, p[i], m[i], v[i]);
    }
    save<n>(exp_avg + first, m);
    save<n>(exp_avg_sq + first, v);
    save<n>(master + first, p);
    copy.template put_run<n>(first, p);
  }
};

template <class Copy, bool with_momentum>
struct Sgd {
  float* master;
  float* momentum_buffer;  ///< nullptr without momentum
  const float* gradient;
  Copy copy;
  const float* gradient_scale;  ///< or nullptr
  float lr;
  float momentum;
  float weight_decay;

  KOKKOS_FORCEINLINE_FUNCTION void update(float scaled_gradient, float& p, float& buffer) const {
    float step = scaled_gradient + weight_decay * p;
    if constexpr (with_momentum) {
      step += momentum * buffer;
    }
    p = p - lr * step;
    buffer = step;
  }

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    const float scale = scale_of(gradient_scale);
    if (!std::isfinite(scale)) {
      return;
    }
    for_each_copied(copy, begin, end, [this, scale](std::int64_t i, std::uint32_t bits) {
      float p = master[i];
      float buffer = with_momentum ? momentum_buffer[i] : 0.0F;
      update(gradient[i] * scale, p, buffer);
      master[i] = p;
      if constexpr (with_momentum) {
        momentum_buffer[i] = buffer;
      }
      copy.put(i, p, bits);
    });
  }

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    const float scale = scale_of(gradient_scale);
    if (!std::isfinite(scale)) {
      return;
    }
    float p[n];
    float buffer[n] = {};
    float g[n];
    load<n>(master + first, p);
    load<n>(gradient + first, g);
    if constexpr (with_momentum) {
      load<n>(momentum_buffer + first, buffer);
    }
    for (int i = 0; i < n; ++i) {
      update(g[i] * scale, p[i], buffer[i]);
    }
    save<n>(master + first, p);
    if constexpr (with_momentum) {
      save<n>(momentum_buffer + first, buffer);
    }
    copy.template put_run<n>(first, p);
  }
};

struct OuterNesterov {
  float* outer;
  float* velocity;
  float* master;
  float lr;
  float momentum;

  KOKKOS_FORCEINLINE_FUNCTION void update(float mean, float& weight, float& v) const {
    const float delta = weight - mean;
    v = momentum * v + delta;
    weight = weight - lr * (delta + momentum * v);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      float weight = outer[i];
      float v = velocity[i];
      update(master[i], weight, v);
      velocity[i] = v;
      outer[i] = weight;
      master[i] = weight;
    }
  }

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    float weight[n];
    float v[n];
    float mean[n];
    load<n>(outer + first, weight);
    load<n>(velocity + first, v);
    load<n>(master + first, mean);
    for (int i = 0; i < n; ++i) {
      update(mean[i], weight[i], v[i]);
    }
    save<n>(velocity + first, v);
    save<n>(outer + first, weight);
    save<n>(master + first, weight);
  }
};

struct RoundStochastically {
  const float* source;
  StochasticCopy copy;

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    for_each_copied(copy, begin, end,
                    [this](std::int64_t i, std::uint32_t bits) { copy.put(i, source[i], bits); });
  }
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    float x[n];
    load<n>(source + first, x);
    copy.put_run<n>(first, x);
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
  const double correction1 = 1.0 - std::pow(step.beta1, step.step);
  const double correction2 = 1.0 - std::pow(step.beta2, step.step);
  with_copy(weight, step.stochastic_rounding, [&]<class Copy>(const Copy& copy) {
    const Adam<Copy> body{
        .master = master.as<float>(),
        .exp_avg = exp_avg.as<float>(),
        .exp_avg_sq = exp_avg_sq.as<float>(),
        .gradient = gradient.as<float>(),
        .copy = copy,
        .gradient_scale = step.gradient_scale,
        .keep = step.decoupled ? static_cast<float>(1.0 - lr * decay) : 1.0F,
        .coupled_decay = step.decoupled ? 0.0F : step.weight_decay,
        .one_minus_beta1 = static_cast<float>(1.0 - step.beta1),
        .beta2 = static_cast<float>(step.beta2),
        .one_minus_beta2 = static_cast<float>(1.0 - step.beta2),
        .step_size = static_cast<float>(lr / correction1),
        .v_hat_root_over_v_root = static_cast<float>(1.0 / std::sqrt(correction2)),
        .epsilon = step.epsilon};
    const bool aligned =
        copy.at_runs() && at_packs<run>(body.master, body.exp_avg, body.exp_avg_sq, body.gradient);
    for_each_pack<run>("adam", master.elements(), aligned, step.place, stream, body);
  });
}

void sgd(const SgdStep& step, TensorView master, TensorView momentum_buffer,
         ConstTensorView gradient, TensorView weight, device::StreamRef stream) {
  FOURFOLD_EXPECT(gradient.elements() == master.elements());
  FOURFOLD_EXPECT(momentum_buffer ? momentum_buffer.elements() == master.elements()
                                  : step.momentum == 0);
  FOURFOLD_EXPECT(!weight || weight.elements() == master.elements());
  with_copy(weight, step.stochastic_rounding, [&]<class Copy>(const Copy& copy) {
    const auto start = [&]<bool with_momentum>(std::bool_constant<with_momentum>) {
      const Sgd<Copy, with_momentum> body{master.as<float>(),
                                          with_momentum ? momentum_buffer.as<float>() : nullptr,
                                          gradient.as<float>(),
                                          copy,
                                          step.gradient_scale,
                                          step.lr,
                                          with_momentum ? step.momentum : 0.0F,
                                          step.weight_decay};
      const bool aligned =
          copy.at_runs() && at_packs<run>(body.master, body.momentum_buffer, body.gradient);
      for_each_pack<run>("sgd", master.elements(), aligned, step.place, stream, body);
    };
    if (momentum_buffer) {
      start(std::true_type{});
    } else {
      start(std::false_type{});
    }
  });
}

void outer_nesterov(const OuterStep& step, TensorView outer, TensorView velocity, TensorView master,
                    device::StreamRef stream) {
  FOURFOLD_EXPECT(outer.elements() == master.elements());
  FOURFOLD_EXPECT(velocity.elements() == master.elements());
  const OuterNesterov body{outer.as<float>(), velocity.as<float>(), master.as<float>(), step.lr,
                           step.momentum};
  for_each_pack<run>("outer_nesterov", master.elements(),
                     at_packs<run>(body.outer, body.velocity, body.master), step.place, stream,
                     body);
}

void round_stochastically(const StochasticRounding& rounding, ConstTensorView source,
                          TensorView target, device::StreamRef stream, MemorySpace place) {
  FOURFOLD_EXPECT(source.elements() == target.elements());
  const RoundStochastically body{source.as<float>(),
                                 StochasticCopy(target.as<BFloat16>(), rounding)};
  for_each_pack<run>("round_stochastically", source.elements(),
                     body.copy.at_runs() && at_packs<run>(body.source), place, stream, body);
}

}  // namespace fourfold::kernels
