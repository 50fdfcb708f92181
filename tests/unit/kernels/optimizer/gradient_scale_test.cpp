// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/tensors.hpp"

#include <fourfold/kernels/optimizer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <limits>

namespace {

using namespace fourfold;
using namespace fourfold::kernels;
using namespace fourfold::kernels::test;

}  // namespace

TEST_CASE("clip_scale is clip_grad_norm_'s coefficient", "[gradient_scale]") {
  device::Tensor squares(DType::f64, {1});
  device::Tensor norm(DType::f32, {1});
  device::Tensor scale(DType::f32, {1});
  const auto clip = [&](double sum, float max_norm, float loss_scale = 1.0F) {
    *squares.as<double>() = sum;
    clip_scale(squares, max_norm, loss_scale, norm, scale, {});
    device::Tensor plain_norm(DType::f32, {1});
    device::Tensor plain_scale(DType::f32, {1});
    reference::clip_scale(squares, max_norm, loss_scale, plain_norm, plain_scale, {});
    CHECK(same_bits(norm, plain_norm));
    CHECK(same_bits(scale, plain_scale));
    return *scale.as<float>();
  };
  CHECK(std::fabs(clip(16.0, 1.0F) - 0.25F) <= 1e-6F);
  CHECK(*norm.as<float>() == 4.0F);
  CHECK(clip(0.25, 1.0F) == 1.0F);
  CHECK(clip(0.0, 1.0F) == 1.0F);
  CHECK(clip(16.0, 0.0F) == 1.0F);
  CHECK(clip(16.0, -1.0F) == 1.0F);
}

TEST_CASE("clip_scale takes the loss scale out, to the bit", "[gradient_scale]") {
  device::Tensor squares(DType::f64, {1});
  device::Tensor norm[2] = {device::Tensor(DType::f32, {1}), device::Tensor(DType::f32, {1})};
  device::Tensor scale[2] = {device::Tensor(DType::f32, {1}), device::Tensor(DType::f32, {1})};
  for (const float max_norm : {0.0F, 0.3F, 10.0F}) {
    for (const double sum : {0.0, 0.7, 123.4}) {
      *squares.as<double>() = sum;
      clip_scale(squares, max_norm, 1.0F, norm[0], scale[0], {});
      *squares.as<double>() = sum * 65536.0 * 65536.0;
      clip_scale(squares, max_norm, 65536.0F, norm[1], scale[1], {});
      CHECK(same_bits(norm[0], norm[1]));
      CHECK(*scale[0].as<float>() == 65536.0F * *scale[1].as<float>());
    }
  }
}

TEST_CASE("clip_scale of gradients that overflowed is NaN, with and without clipping",
          "[gradient_scale]") {
  device::Tensor squares(DType::f64, {1});
  device::Tensor norm(DType::f32, {1});
  device::Tensor scale(DType::f32, {1});
  for (const auto body : {clip_scale, reference::clip_scale}) {
    for (const double sum : {std::nan(""), -std::nan(""), HUGE_VAL, 1e80}) {
      for (const float max_norm : {0.0F, 1.0F}) {
        *squares.as<double>() = sum;
        body(squares, max_norm, 4.0F, norm, scale, {});
        CHECK_FALSE(std::isfinite(*norm.as<float>()));
        CHECK(std::isnan(*scale.as<float>()));
      }
    }
  }
}

TEST_CASE("a scale is void where the norm is not finite", "[gradient_scale]") {
  const auto body = GENERATE(void_scale, reference::void_scale);
  const device::Tensor norm(DType::f32, {1});
  const device::Tensor scale(DType::f32, {1});
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    *norm.as<float>() = 3;
    *scale.as<float>() = 0.25F;
    body(norm, scale, {});
    CHECK(*scale.as<float>() == 0.25F);
    *norm.as<float>() = bad;
    body(norm, scale, {});
    CHECK(std::isnan(*scale.as<float>()));
  }
}
