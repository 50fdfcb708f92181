// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/tensors.hpp"

#include <fourfold/kernels/cross_entropy.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace {

using namespace fourfold;
using namespace fourfold::kernels;
using namespace fourfold::kernels::test;

void check_against_reference(DType dtype, std::int64_t tokens, std::int64_t columns,
                             std::int64_t vocabulary, double scale) {
  CAPTURE(name(dtype), tokens, columns, vocabulary, scale);
  const device::Tensor logits = random_tensor(dtype, {tokens, columns}, 1, scale);
  const device::Tensor target = targets(tokens, vocabulary);
  device::Tensor plain_loss(DType::f32, {tokens});
  const device::Tensor plain = copy_of(logits);
  reference::cross_entropy_forward_backward(plain, target, plain_loss, vocabulary, 0.25F, {});

  device::Tensor loss(DType::f32, {tokens});
  const device::Tensor before = copy_of(logits);
  cross_entropy(logits, target, loss, vocabulary, {});
  CHECK(same_bits(logits, before));
  CHECK(worst_error(loss, plain_loss, 1.0) <= 4e-6);

  device::Tensor fused_loss(DType::f32, {tokens});
  cross_entropy_forward_backward(logits, target, fused_loss, vocabulary, 0.25F, {});
  CHECK(same_bits(fused_loss, loss));
  // exp of differences up to 6 scale: the rounding of a logit of that size is an error of the
  // whole.
  CHECK(worst_error(logits, plain, 1e-6) <= tolerance(dtype) + 1e-6 * scale);
}

}  // namespace

TEST_CASE("cross-entropy equals its reference", "[cross_entropy]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  for (const std::int64_t tokens : odd_rows) {
    for (const std::int64_t columns : odd_features) {
      check_against_reference(dtype, tokens, columns, columns, 3.0);
    }
  }
  for (const std::int64_t columns : {8, 32, 40, 1024, 8192, 16384, 16392}) {
    check_against_reference(dtype, 3, columns, columns, 3.0);
    check_against_reference(dtype, 3, columns, columns - 5, 3.0);
  }
  check_against_reference(dtype, 3, 50257, 50257, 1.0);
  check_against_reference(dtype, 3, 50304, 50257, 4.0);
}

TEST_CASE("padding columns take no part and get no gradient", "[cross_entropy]") {
  device::Tensor padded = random_tensor(DType::f32, {3, 128}, 1);
  device::Tensor dense(DType::f32, {3, 101});
  for (std::int64_t t = 0; t < 3; ++t) {
    std::copy_n(padded.as<float>() + t * 128, 101, dense.as<float>() + t * 101);
    std::fill_n(padded.as<float>() + t * 128 + 101, 27, t == 1 ? NAN : 1e30F);
  }
  const device::Tensor target = targets(3, 101);
  device::Tensor padded_loss(DType::f32, {3});
  device::Tensor dense_loss(DType::f32, {3});
  cross_entropy_forward_backward(padded, target, padded_loss, 101, 1.0F, {});
  cross_entropy_forward_backward(dense, target, dense_loss, 101, 1.0F, {});
  CHECK(same_bits(padded_loss, dense_loss));
  for (std::int64_t t = 0; t < 3; ++t) {
    CHECK(std::equal(dense.as<float>() + t * 101, dense.as<float>() + (t + 1) * 101,
                     padded.as<float>() + t * 128));
    CHECK(std::all_of(padded.as<float>() + t * 128 + 101, padded.as<float>() + (t + 1) * 128,
                      [](float value) { return value == 0.0F; }));
  }
}

TEST_CASE("cross-entropy gives the same bits wherever its rows begin", "[cross_entropy]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t vocabulary = GENERATE(1008, 1001, 3);
  constexpr std::int64_t tokens = 9;
  const device::Tensor logits = random_tensor(dtype, {tokens, 1008}, 1);
  const Shifted shifted(logits);
  const device::Tensor target = targets(tokens, vocabulary);
  device::Tensor loss(DType::f32, {tokens});
  device::Tensor shifted_loss(DType::f32, {tokens});
  cross_entropy_forward_backward(logits, target, loss, vocabulary, 0.5F, {});
  cross_entropy_forward_backward(shifted, target, shifted_loss, vocabulary, 0.5F, {});
  CHECK(same_bits(logits, shifted.view()));
  CHECK(same_bits(loss, shifted_loss));
}

// The largest logit so far changes with each.
TEST_CASE("cross-entropy of logits that rise or fall along the row", "[cross_entropy]") {
  const float step = GENERATE(0.03125F, -0.03125F);
  constexpr std::int64_t vocabulary = 4099;
  device::Tensor logits(DType::f32, {1, vocabulary});
  for (std::int64_t v = 0; v < vocabulary; ++v) {
    logits.as<float>()[v] = step * static_cast<float>(v);
  }
  device::Tensor target(DType::i32, {1});
  *target.as<std::int32_t>() = step > 0 ? vocabulary - 1 : 0;  // the largest
  device::Tensor loss(DType::f32, {1});
  cross_entropy_forward_backward(logits, target, loss, vocabulary, 1.0F, {});
  // Of a geometric series, all but e^-128 of it.
  const double first = 1 - std::exp(-0.03125);
  CHECK(std::fabs(static_cast<double>(*loss.as<float>()) + std::log(first)) <= 2e-6);
  const auto at = [&](std::int64_t from_largest) {
    return logits.as<float>()[step > 0 ? vocabulary - 1 - from_largest : from_largest];
  };
  CHECK(std::fabs(static_cast<double>(at(0)) - (first - 1)) <= 1e-6);
  CHECK(std::fabs(static_cast<double>(at(100)) - first * std::exp(-3.125)) <= 1e-8);
}

TEST_CASE("rows that are all ignored cost nothing and give zeros", "[cross_entropy]") {
  device::Tensor logits = random_tensor(DType::bf16, {5, 129}, 1);
  device::Tensor target(DType::i32, {5});
  std::fill_n(target.as<std::int32_t>(), 5, ignored_target);
  device::Tensor loss = random_tensor(DType::f32, {5}, 2);
  cross_entropy_forward_backward(logits, target, loss, 129, 1.0F, {});
  CHECK(same_bits(loss, device::Tensor(DType::f32, {5})));
  CHECK(same_bits(logits, device::Tensor(DType::bf16, {5, 129})));
}

TEST_CASE("large logits neither overflow nor vanish", "[cross_entropy]") {
  constexpr std::int64_t vocabulary = 100;
  device::Tensor logits(DType::f32, {2, vocabulary});
  std::fill_n(logits.as<float>(), vocabulary, 3e38F);               // all equal, near the largest
  std::fill_n(logits.as<float>() + vocabulary, vocabulary, -1e5F);  // one stands out
  logits.as<float>()[vocabulary + 7] = 1e5F;
  device::Tensor target(DType::i32, {2});
  target.as<std::int32_t>()[0] = 0;
  target.as<std::int32_t>()[1] = 8;
  device::Tensor loss(DType::f32, {2});
  cross_entropy_forward_backward(logits, target, loss, vocabulary, 1.0F, {});
  CHECK(std::fabs(static_cast<double>(loss.as<float>()[0]) - std::log(100.0)) <= 1e-6);
  CHECK(loss.as<float>()[1] == 2e5F);
  CHECK(std::fabs(logits.as<float>()[1] - 0.01F) <= 1e-8F);
  CHECK(logits.as<float>()[vocabulary + 7] == 1.0F);
  CHECK(logits.as<float>()[vocabulary + 8] == -1.0F);
}

TEST_CASE("a NaN among the logits makes the loss NaN, one that is -inf does not",
          "[cross_entropy]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  for (const float odd : {NAN, -NAN, -INFINITY}) {
    for (const std::int64_t place : {0, 5, 70, 128}) {
      device::Tensor logits = random_tensor(dtype, {1, 129}, 1);
      write_element(logits, place, static_cast<double>(odd));
      device::Tensor target(DType::i32, {1});
      *target.as<std::int32_t>() = 7;
      device::Tensor loss(DType::f32, {1});
      cross_entropy(logits, target, loss, 129, {});
      CHECK(std::isnan(*loss.as<float>()) == std::isnan(odd));
    }
  }
}

TEST_CASE("the gradient of cross-entropy equals finite differences in double", "[cross_entropy]") {
  constexpr std::int64_t tokens = 5;
  constexpr std::int64_t vocabulary = 11;
  constexpr double gradient_scale = 0.125;
  device::Tensor logits = random_tensor(DType::f32, {tokens, vocabulary}, 1, 2.0);
  const device::Tensor target = targets(tokens, vocabulary);
  const auto expected = finite_differences(values(logits), [&](const std::vector<double>& v) {
    double loss = 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::int32_t wanted = target.as<std::int32_t>()[t];
      double sum = 0;
      for (std::int64_t c = 0; c < vocabulary; ++c) {
        sum += std::exp(v[static_cast<std::size_t>(t * vocabulary + c)]);
      }
      if (wanted != ignored_target) {
        loss += std::log(sum) - v[static_cast<std::size_t>(t * vocabulary + wanted)];
      }
    }
    return gradient_scale * loss;
  });
  device::Tensor loss(DType::f32, {tokens});
  cross_entropy_forward_backward(logits, target, loss, vocabulary, 0.125F, {});
  CHECK(worst_error(logits, expected) <= 1e-7);
}

TEST_CASE("cross-entropy gives the same bits again and row by row", "[cross_entropy]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  constexpr std::int64_t tokens = 9;
  constexpr std::int64_t vocabulary = 1003;
  const device::Tensor whole = random_tensor(dtype, {tokens, vocabulary}, 1);
  const device::Tensor again = copy_of(whole);
  const device::Tensor cut = copy_of(whole);
  const device::Tensor target = targets(tokens, vocabulary);
  device::Tensor loss(DType::f32, {tokens});
  device::Tensor cut_loss(DType::f32, {tokens});
  cross_entropy_forward_backward(whole, target, loss, vocabulary, 0.5F, {});
  cross_entropy_forward_backward(again, target, loss, vocabulary, 0.5F, {});
  CHECK(same_bits(whole, again));
  for (std::int64_t t = tokens - 1; t >= 0; --t) {
    cross_entropy_forward_backward(cut.view().rows(t, 1), target.view().rows(t, 1),
                                   cut_loss.view().rows(t, 1), vocabulary, 0.5F, {});
  }
  CHECK(same_bits(whole, cut));
  CHECK(same_bits(loss, cut_loss));
}
