// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/tensors.hpp"

#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/operands.hpp>
#include <fourfold/kernels/optimizer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace {

using namespace fourfold;
using namespace fourfold::kernels;
using namespace fourfold::kernels::test;

constexpr std::int64_t count = 10007;

struct Parameters {
  device::Tensor master = random_tensor(DType::f32, {count}, 1);
  device::Tensor exp_avg = random_tensor(DType::f32, {count}, 2, 0.1);
  device::Tensor exp_avg_sq = squares(random_tensor(DType::f32, {count}, 3, 0.1));
  device::Tensor gradient = random_tensor(DType::f32, {count}, 4);

  static device::Tensor squares(device::Tensor x) {
    for (std::int64_t i = 0; i < count; ++i) {
      x.as<float>()[i] *= x.as<float>()[i];
    }
    return x;
  }
  TensorView part(const device::Tensor& tensor, std::int64_t first, std::int64_t length) const {
    return tensor.view().rows(first, length);
  }
};

/// One number where kernels can read it.
device::Tensor number(float value) {
  device::Tensor tensor(DType::f32, {1});
  tensor.as<float>()[0] = value;
  return tensor;
}

}  // namespace

TEST_CASE("adam equals its reference", "[optimizer]") {
  const bool decoupled = GENERATE(true, false);
  const auto weight_dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const device::Tensor gradient_scale = number(0.37F);
  const AdamStep step{.lr = 1e-2F,
                      .beta1 = 0.9,
                      .beta2 = 0.999,
                      .weight_decay = 0.1F,
                      .decoupled = decoupled,
                      .step = 7,
                      .gradient_scale = gradient_scale.as<float>()};
  Parameters fast;
  Parameters plain;
  device::Tensor fast_weight(weight_dtype, {count});
  adam(step, fast.master, fast.exp_avg, fast.exp_avg_sq, fast.gradient, fast_weight, {});
  reference::adam(step, plain.master, plain.exp_avg, plain.exp_avg_sq, plain.gradient, TensorView(),
                  {});
  CHECK(worst_error(fast.master, plain.master, 1e-2) <= 1e-6);
  CHECK(worst_error(fast.exp_avg, plain.exp_avg, 1e-2) <= 1e-6);
  CHECK(worst_error(fast.exp_avg_sq, plain.exp_avg_sq, 1e-4) <= 1e-6);
  device::Tensor rounded(weight_dtype, {count});
  cast(fast.master, rounded, {});
  CHECK(same_bits(fast_weight, rounded));
}

// What torch.optim.AdamW and torch.optim.Adam document, in double, with the state kept in double:
// three steps of the kernel may differ by the rounding of its f32 state only.
TEST_CASE("three steps of adam follow the published recurrence", "[optimizer]") {
  const bool decoupled = GENERATE(true, false);
  constexpr double lr = 3e-3;
  constexpr double beta1 = 0.9;
  constexpr double beta2 = 0.95;
  constexpr double epsilon = 1e-8;
  constexpr double decay = 0.1;
  Parameters fast;
  std::vector<double> p = values(fast.master);
  std::vector<double> m(count, 0.0);
  std::vector<double> v(count, 0.0);
  fast.exp_avg = device::Tensor(DType::f32, {count});
  fast.exp_avg_sq = device::Tensor(DType::f32, {count});
  for (int t = 1; t <= 3; ++t) {
    const device::Tensor gradient =
        random_tensor(DType::f32, {count}, static_cast<std::uint64_t>(40 + t));
    adam({.lr = 3e-3F,
          .beta1 = beta1,
          .beta2 = beta2,
          .weight_decay = 0.1F,
          .decoupled = decoupled,
          .step = t},
         fast.master, fast.exp_avg, fast.exp_avg_sq, gradient, TensorView(), {});
    for (std::size_t i = 0; i < p.size(); ++i) {
      double g = read_element(gradient, static_cast<std::int64_t>(i));
      if (decoupled) {
        p[i] *= 1 - lr * decay;
      } else {
        g += decay * p[i];
      }
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      const double m_hat = m[i] / (1 - std::pow(beta1, t));
      const double v_hat = v[i] / (1 - std::pow(beta2, t));
      p[i] -= lr * m_hat / (std::sqrt(v_hat) + epsilon);
    }
  }
  CHECK(worst_error(fast.master, p) <= 3e-7);
  CHECK(worst_error(fast.exp_avg, m) <= 1e-7);
  CHECK(worst_error(fast.exp_avg_sq, v) <= 1e-7);
}

TEST_CASE("three steps of sgd follow the published recurrence", "[optimizer]") {
  const double momentum = GENERATE(0.0, 0.75);
  const bool buffer_at_hand = momentum != 0;
  Parameters fast;
  std::vector<double> p = values(fast.master);
  std::vector<double> buffer(count, 0.0);
  device::Tensor momentum_buffer(DType::f32, {count});
  device::Tensor weight(DType::bf16, {count});
  for (int t = 1; t <= 3; ++t) {
    const device::Tensor gradient =
        random_tensor(DType::f32, {count}, static_cast<std::uint64_t>(40 + t));
    sgd({.lr = 0.125F, .momentum = static_cast<float>(momentum), .weight_decay = 0.03125F},
        fast.master, buffer_at_hand ? momentum_buffer.view() : TensorView(), gradient, weight, {});
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double g = read_element(gradient, static_cast<std::int64_t>(i)) + 0.03125 * p[i];
      buffer[i] = momentum * buffer[i] + g;
      p[i] -= 0.125 * buffer[i];
    }
  }
  CHECK(worst_error(fast.master, p) <= 3e-7);
  if (buffer_at_hand) {
    CHECK(worst_error(momentum_buffer, buffer) <= 3e-7);
  }
  device::Tensor rounded(DType::bf16, {count});
  cast(fast.master, rounded, {});
  CHECK(same_bits(weight, rounded));
}

TEST_CASE("sgd equals its reference", "[optimizer]") {
  const device::Tensor gradient_scale = number(0.37F);
  const SgdStep step{.lr = 0.1F,
                     .momentum = 0.9F,
                     .weight_decay = 0.01F,
                     .gradient_scale = gradient_scale.as<float>()};
  Parameters fast;
  Parameters plain;
  sgd(step, fast.master, fast.exp_avg, fast.gradient, TensorView(), {});
  reference::sgd(step, plain.master, plain.exp_avg, plain.gradient, TensorView(), {});
  CHECK(worst_error(fast.master, plain.master, 1.0) <= 4e-7);
  CHECK(worst_error(fast.exp_avg, plain.exp_avg, 1.0) <= 4e-7);
}

TEST_CASE("updates give the same bits for any cut of the range, in either place", "[optimizer]") {
  Parameters whole;
  Parameters cut;
  device::Tensor whole_weight(DType::bf16, {count});
  device::Tensor cut_weight(DType::bf16, {count});
  AdamStep step{.lr = 1e-3F, .weight_decay = 0.1F, .step = 3};
  SgdStep sgd_step{.lr = 1e-3F, .momentum = 0.9F};
  adam(step, whole.master, whole.exp_avg, whole.exp_avg_sq, whole.gradient, whole_weight, {});
  sgd(sgd_step, whole.master, whole.exp_avg, whole.gradient, whole_weight, {});
  OuterStep outer_step{};
  outer_nesterov(outer_step, whole.exp_avg_sq, whole.exp_avg, whole.master, {});
  step.place = sgd_step.place = outer_step.place = GENERATE(MemorySpace::device, MemorySpace::host);
  const std::int64_t cuts[] = {count, 4099, 4096, 777, 1, 0};
  for (int i = 1; i < 6; ++i) {
    const auto part = [&](const device::Tensor& tensor) {
      return tensor.view().rows(cuts[i], cuts[i - 1] - cuts[i]);
    };
    adam(step, part(cut.master), part(cut.exp_avg), part(cut.exp_avg_sq), part(cut.gradient),
         part(cut_weight), {});
    sgd(sgd_step, part(cut.master), part(cut.exp_avg), part(cut.gradient), part(cut_weight), {});
    outer_nesterov(outer_step, part(cut.exp_avg_sq), part(cut.exp_avg), part(cut.master), {});
  }
  CHECK(same_bits(whole.master, cut.master));
  CHECK(same_bits(whole.exp_avg, cut.exp_avg));
  CHECK(same_bits(whole.exp_avg_sq, cut.exp_avg_sq));
  CHECK(same_bits(whole_weight, cut_weight));
  cast(whole.master, whole_weight, {});
  cast(cut.master, cut_weight, {}, step.place);
  CHECK(same_bits(whole_weight, cut_weight));
}

TEST_CASE("an overflow leaves every bit of weights, masters and moments", "[optimizer]") {
  const DType weight_dtype = GENERATE(DType::bf16, DType::f16);
  const float overflow = GENERATE(NAN, INFINITY, -INFINITY);
  const bool fast = GENERATE(true, false);
  CAPTURE(name(weight_dtype), overflow, fast);
  const device::Tensor gradient_scale = number(overflow);
  Parameters now;
  const Parameters before;
  now.gradient.as<float>()[77] = INFINITY;
  const device::Tensor weight = random_tensor(weight_dtype, {count}, 5);
  const device::Tensor weight_before = copy_of(weight);
  const AdamStep adam_step{
      .lr = 0.1F, .weight_decay = 0.1F, .step = 3, .gradient_scale = gradient_scale.as<float>()};
  const SgdStep sgd_step{.lr = 0.1F,
                         .momentum = 0.9F,
                         .weight_decay = 0.1F,
                         .gradient_scale = gradient_scale.as<float>()};
  const auto run_adam = fast ? adam : reference::adam;
  const auto run_sgd = fast ? sgd : reference::sgd;
  run_adam(adam_step, now.master, now.exp_avg, now.exp_avg_sq, now.gradient, weight, {});
  run_sgd(sgd_step, now.master, now.exp_avg, now.gradient, weight, {});
  run_sgd(SgdStep{.lr = 0.1F, .gradient_scale = gradient_scale.as<float>()}, now.master,
          TensorView(), now.gradient, weight, {});
  CHECK(same_bits(now.master, before.master));
  CHECK(same_bits(now.exp_avg, before.exp_avg));
  CHECK(same_bits(now.exp_avg_sq, before.exp_avg_sq));
  CHECK(same_bits(weight, weight_before));
}

// What torch.optim.SGD(nesterov=True) documents, with outer - mean as the gradient, in double.
TEST_CASE("three outer steps follow the published recurrence", "[optimizer]") {
  const auto body = GENERATE(outer_nesterov, reference::outer_nesterov);
  const MemorySpace place = GENERATE(MemorySpace::device, MemorySpace::host);
  const device::Tensor outer = random_tensor(DType::f32, {count}, 1);
  const device::Tensor velocity(DType::f32, {count});
  std::vector<double> p = values(outer);
  std::vector<double> v(count, 0.0);
  for (int round = 0; round < 3; ++round) {
    const device::Tensor mean =
        random_tensor(DType::f32, {count}, static_cast<std::uint64_t>(50 + round));
    const std::vector<double> mean_before = values(mean);
    body({.lr = 0.7F, .momentum = 0.9F, .place = place}, outer, velocity, mean, {});
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double delta = p[i] - mean_before[i];
      v[i] = 0.9 * v[i] + delta;
      p[i] -= 0.7 * (delta + 0.9 * v[i]);
    }
    CHECK(same_bits(mean, outer));
  }
  CHECK(worst_error(outer, p) <= 2e-6);
  CHECK(worst_error(velocity, v) <= 2e-6);
}

TEST_CASE("an outer step of rate 1 without momentum takes the mean", "[optimizer]") {
  const auto body = GENERATE(outer_nesterov, reference::outer_nesterov);
  const device::Tensor outer = random_tensor(DType::f32, {count}, 1);
  const device::Tensor velocity(DType::f32, {count});
  const device::Tensor mean = random_tensor(DType::f32, {count}, 2);
  const std::vector<double> expected = values(mean);
  body({.lr = 1, .momentum = 0}, outer, velocity, mean, {});
  CHECK(worst_error(outer, expected) <= 3e-7);
}
