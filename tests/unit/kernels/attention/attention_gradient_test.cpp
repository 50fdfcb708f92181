// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "attention_case.hpp"

#include <fourfold/kernels/attention.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace fourfold;
using device::Tensor;
using test::AttentionCase;

namespace {

/// The operands in f64.
struct Operands {
  std::vector<double> q;
  std::vector<double> k;
  std::vector<double> v;
};

std::vector<double> widen(const Tensor& x) {
  return {x.as<float>(), x.as<float>() + x.shape().elements()};
}

/// sum(dout * attention(q, k, v)), from the formula, in f64.
double loss(const AttentionCase& c, const Operands& x) {
  const kernels::AttentionShape& s = c.shape;
  const std::int64_t q_width = c.q.shape()[2];
  const std::int64_t k_width = c.k.shape()[2];
  const auto at = [&](const std::vector<double>& y, std::int64_t width, std::int64_t t,
                      std::int64_t n, std::int64_t h) {
    return y[static_cast<std::size_t>(t * width + AttentionCase::margin + n * s.head_dim + h)];
  };
  const std::vector<double> dout = widen(c.dout);
  double total = 0;
  for (std::int64_t n = 0; n < s.heads; ++n) {
    const std::int64_t kv = n * s.kv_heads / s.heads;
    for (std::int64_t i = 0; i < s.query_tokens; ++i) {
      double denominator = 0;
      double numerator = 0;
      for (std::int64_t j = 0; j < s.key_tokens; ++j) {
        if (s.causal && j > i + s.query_offset) {
          continue;
        }
        double score = 0;
        double value = 0;
        for (std::int64_t h = 0; h < s.head_dim; ++h) {
          score += at(x.q, q_width, i, n, h) * at(x.k, k_width, j, kv, h);
          value += at(dout, q_width, i, n, h) * at(x.v, k_width, j, kv, h);
        }
        const double e = std::exp(static_cast<double>(s.scale) * score);
        denominator += e;
        numerator += e * value;
      }
      total += denominator == 0 ? 0 : numerator / denominator;
    }
  }
  return total;
}

/// Largest difference between `gradient` and central differences with respect to `operand`, as a
/// share of the largest.
double error(const AttentionCase& c, std::vector<double> Operands::*operand,
             const Tensor& gradient) {
  Operands x{widen(c.q), widen(c.k), widen(c.v)};
  constexpr double step = 1e-4;  // its square is far below what f32 gradients can show
  const std::int64_t width = gradient.shape()[2];
  double worst = 0;
  double largest = 0;
  for (std::int64_t i = 0; i < gradient.shape().elements(); ++i) {
    const std::int64_t feature = i % width;
    if (feature < AttentionCase::margin || feature >= width - AttentionCase::margin) {
      continue;
    }
    double& value = (x.*operand)[static_cast<std::size_t>(i)];
    const double before = value;
    value = before + step;
    const double above = loss(c, x);
    value = before - step;
    const double below = loss(c, x);
    value = before;
    const double numeric = (above - below) / (2 * step);
    worst = std::max(worst, std::fabs(numeric - gradient.as<float>()[i]));
    largest = std::max(largest, std::fabs(numeric));
  }
  return worst / largest;
}

template <class Forward, class Backward>
void check_gradients(const AttentionCase& c, Forward forward, Backward backward) {
  constexpr device::StreamRef stream;
  const Tensor out = c.queries(20);
  const Tensor lse = c.rows();
  const Tensor delta = c.rows();
  const Tensor dq = c.queries(21);
  const Tensor dk = c.keys(22);
  const Tensor dv = c.keys(23);
  forward(c.shape, c.const_heads(c.q), c.const_heads(c.k), c.const_heads(c.v), c.heads(out),
          lse.as<float>(), stream);
  backward(c.shape, c.const_heads(c.q), c.const_heads(c.k), c.const_heads(c.v), c.const_heads(out),
           c.const_heads(c.dout), lse.as<float>(), delta.as<float>(), c.heads(dq), c.heads(dk),
           c.heads(dv), stream);
  CHECK(error(c, &Operands::q, dq) <= 5e-6);
  CHECK(error(c, &Operands::k, dk) <= 5e-6);
  CHECK(error(c, &Operands::v, dv) <= 5e-6);
}

}  // namespace

TEST_CASE("the gradients of attention agree with finite differences", "[attention]") {
  const test::AttentionSize size =
      GENERATE(test::AttentionSize{1, 7, 7, 2, 1, 5}, test::AttentionSize{1, 9, 9, 3, 3, 3, false},
               test::AttentionSize{1, 5, 11, 4, 2, 4, true, 4},
               test::AttentionSize{1, 11, 6, 2, 1, 3, true, -3});
  CAPTURE(size);
  const AttentionCase c(size, DType::f32);
  check_gradients(c, kernels::attention, kernels::attention_backward);
  check_gradients(c, kernels::reference::attention, kernels::reference::attention_backward);
}
