// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/vector_math.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <limits>

using fourfold::kernels::vector_exp;
using fourfold::kernels::vector_exp2_reduced;
using fourfold::kernels::vector_exp_minus;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

double relative_error(double value, double exact) {
  return std::fabs(value / exact - 1.0);
}

}  // namespace

TEST_CASE("vector_exp is within 2e-7 of exp over all normal results", "[vector_math]") {
  double worst = 0;
  for (int i = -8733000; i <= 8872000; i += 7) {
    const float x = static_cast<float>(i) * 1e-5F;
    worst = std::fmax(worst, relative_error(vector_exp(x), std::exp(static_cast<double>(x))));
  }
  CHECK(worst <= 2e-7);
}

TEST_CASE("vector_exp at the ends of its range", "[vector_math]") {
  CHECK(vector_exp(0.0F) == 1.0F);
  CHECK(vector_exp(-infinity) == 0.0F);
  CHECK(vector_exp(-1e30F) == 0.0F);
  CHECK(vector_exp(infinity) == infinity);
  CHECK(vector_exp(88.8F) == infinity);
  CHECK(std::isnan(vector_exp(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::fabs(vector_exp(-95.0F) - std::exp(-95.0)) <= 1e-44);
}

TEST_CASE("vector_exp_minus is exp of minus x, and 0 from 88 on", "[vector_math]") {
  double worst = 0;
  for (int i = 0; i <= 8730000; i += 3) {
    const float x = static_cast<float>(i) * 1e-5F;
    const double exact = std::exp(-static_cast<double>(x));
    worst = std::fmax(worst,
                      relative_error(vector_exp_minus(x), exact) - 3e-9 * static_cast<double>(x));
  }
  CHECK(worst <= 2e-7);
  CHECK(vector_exp_minus(0.0F) == 1.0F);
  CHECK(vector_exp_minus(88.0F) == 0.0F);
  CHECK(vector_exp_minus(1e30F) == 0.0F);
  CHECK(vector_exp_minus(infinity) == 0.0F);
  CHECK(std::isnan(vector_exp_minus(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("vector_exp2_reduced is within 2e-7 of 2^r", "[vector_math]") {
  double worst = 0;
  for (int i = -500000; i <= 500000; ++i) {
    const float r = static_cast<float>(i) * 1e-6F;
    worst =
        std::fmax(worst, relative_error(vector_exp2_reduced(r), std::exp2(static_cast<double>(r))));
  }
  CHECK(worst <= 2e-7);
  CHECK(vector_exp2_reduced(0.0F) == 1.0F);
}
