// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "attention_case.hpp"

#include <fourfold/device/device.hpp>
#include <fourfold/kernels/attention.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <limits>
#include <vector>

using namespace fourfold;
using device::Tensor;
using test::AttentionCase;
using test::AttentionSize;

namespace {

constexpr device::StreamRef stream;

/// f32: other order of summation and an exp of 2e-7.
double tolerance(DType dtype) {
  return dtype == DType::f32 ? 5e-6 : test::last_place(dtype);
}

AttentionSize any_size() {
  return GENERATE(AttentionSize{1, 1, 1, 1, 1, 1}, AttentionSize{2, 3, 3, 2, 1, 8},
                  AttentionSize{1, 17, 17, 5, 5, 13}, AttentionSize{2, 65, 65, 4, 2, 64},
                  AttentionSize{1, 129, 129, 3, 1, 80}, AttentionSize{1, 129, 129, 1, 1, 128},
                  AttentionSize{1, 33, 33, 2, 1, 256},               // the widest on a device
                  AttentionSize{1, 401, 401, 1, 1, 5},               // more than one query block
                  AttentionSize{1, 65, 65, 6, 2, 13, false},         // no mask
                  AttentionSize{1, 17, 197, 1, 1, 1, false},         //
                  AttentionSize{1, 17, 129, 2, 1, 64, true, 112},    // the end of a sequence
                  AttentionSize{1, 1, 129, 4, 2, 64, true, 128},     // one new token
                  AttentionSize{1, 65, 129, 3, 3, 8, true, 20},      // some keys seen by nobody
                  AttentionSize{1, 129, 65, 2, 1, 13, true, -30},    // some queries see nothing
                  AttentionSize{2, 17, 17, 2, 1, 8, true, -1000},    // no query sees anything
                  AttentionSize{1, 129, 40, 2, 2, 16, true, 1000});  // every query sees everything
}

struct Gradients {
  explicit Gradients(const AttentionCase& c)
      : dq(c.queries(11)), dk(c.keys(12)), dv(c.keys(13)), delta(c.rows()) {}
  Tensor dq;
  Tensor dk;
  Tensor dv;
  Tensor delta;
};

template <class Body>
Gradients differentiate(Body body, const AttentionCase& c, const Tensor& out, const Tensor& lse) {
  Gradients g(c);
  body(c.shape, c.const_heads(c.q), c.const_heads(c.k), c.const_heads(c.v), c.const_heads(out),
       c.const_heads(c.dout), lse.as<float>(), g.delta.as<float>(), c.heads(g.dq), c.heads(g.dk),
       c.heads(g.dv), stream);
  return g;
}

template <class Body>
void attend(Body body, const AttentionCase& c, const Tensor& out, const Tensor& lse) {
  body(c.shape, c.const_heads(c.q), c.const_heads(c.k), c.const_heads(c.v), c.heads(out),
       lse.as<float>(), stream);
}

}  // namespace

TEST_CASE("attention agrees with the reference", "[attention]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const AttentionSize size = any_size();
  CAPTURE(name(dtype), size);
  const AttentionCase c(size, dtype);
  // The same garbage in both, so that the elements between the heads are compared too.
  const Tensor out = c.queries(20);
  const Tensor out_expected = c.queries(20);
  const Tensor lse = c.rows();
  const Tensor lse_expected = c.rows();
  attend(kernels::attention, c, out, lse);
  attend(kernels::reference::attention, c, out_expected, lse_expected);
  CHECK(test::difference(out, out_expected) <= tolerance(dtype));
  for (std::int64_t i = 0; i < lse.shape().elements(); ++i) {
    const float expected = lse_expected.as<float>()[i];
    const float actual = lse.as<float>()[i];
    REQUIRE((actual == expected || std::fabs(actual - expected) <= 2e-6));
  }
}

TEST_CASE("the gradients of attention agree with the reference", "[attention]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const AttentionSize size = any_size();
  CAPTURE(name(dtype), size);
  const AttentionCase c(size, dtype);
  const Tensor out = c.queries(20);
  const Tensor lse = c.rows();
  attend(kernels::reference::attention, c, out, lse);
  const Gradients g = differentiate(kernels::attention_backward, c, out, lse);
  const Gradients expected = differentiate(kernels::reference::attention_backward, c, out, lse);
  CHECK(test::difference(g.dq, expected.dq) <= tolerance(dtype));
  CHECK(test::difference(g.dk, expected.dk) <= tolerance(dtype));
  CHECK(test::difference(g.dv, expected.dv) <= tolerance(dtype));
}

TEST_CASE("a query that sees no key gets zeros", "[attention]") {
  const AttentionCase c({1, 5, 5, 2, 1, 4, true, -2}, DType::f32);
  const Tensor out = c.queries(20);
  const Tensor lse = c.rows();
  attend(kernels::attention, c, out, lse);
  const Gradients g = differentiate(kernels::attention_backward, c, out, lse);
  const std::int64_t width = out.shape()[2];
  for (std::int64_t t = 0; t < 2; ++t) {
    CHECK(lse.as<float>()[t] == -std::numeric_limits<float>::infinity());
    for (std::int64_t f = AttentionCase::margin; f < width - AttentionCase::margin; ++f) {
      CHECK(out.as<float>()[t * width + f] == 0.0F);
      CHECK(g.dq.as<float>()[t * width + f] == 0.0F);
    }
  }
  CHECK(std::isfinite(lse.as<float>()[2]));
}

TEST_CASE("attention stays finite for scores that overflow exp", "[attention]") {
  const AttentionCase c({1, 40, 40, 1, 1, 8}, DType::f32);
  for (std::int64_t i = 0; i < c.q.shape().elements(); ++i) {
    c.q.as<float>()[i] *= 1000.0F;
  }
  const Tensor out = c.queries(20);
  const Tensor out_expected = c.queries(20);
  const Tensor lse = c.rows();
  attend(kernels::attention, c, out, lse);
  attend(kernels::reference::attention, c, out_expected, lse);
  // Scores of about 1000 carry rounding errors of 1e-4, and so do their exponentials.
  CHECK(test::difference(out, out_expected) <= 1e-3);
}

TEST_CASE("the same attention gives the same bits", "[attention]") {
  const AttentionCase c({2, 129, 129, 4, 2, 64}, DType::f32);
  const Tensor out[2] = {c.queries(20), c.queries(20)};
  const Tensor lse[2] = {c.rows(), c.rows()};
  std::vector<Gradients> g;
  for (const int run : {0, 1}) {
    attend(kernels::attention, c, out[run], lse[run]);
    g.push_back(differentiate(kernels::attention_backward, c, out[run], lse[run]));
  }
  CHECK(test::same_bits(out[0], out[1]));
  CHECK(test::same_bits(lse[0], lse[1]));
  CHECK(test::same_bits(g[0].dq, g[1].dq));
  CHECK(test::same_bits(g[0].dk, g[1].dk));
  CHECK(test::same_bits(g[0].dv, g[1].dv));
}

TEST_CASE("without queries there is no attention, and zeros for the gradients of keys",
          "[attention]") {
  const AttentionCase c({2, 0, 9, 2, 1, 8}, DType::f32);
  const Tensor out = c.queries(20);
  const Tensor lse = c.rows();
  attend(kernels::attention, c, out, lse);
  const Gradients g = differentiate(kernels::attention_backward, c, out, lse);
  const Gradients expected = differentiate(kernels::reference::attention_backward, c, out, lse);
  CHECK(test::same_bits(g.dk, expected.dk));
  CHECK(test::same_bits(g.dv, expected.dv));
}

#if FOURFOLD_CONTRACTS
TEST_CASE("operands of several types, and results of others, are contract violations",
          "[attention]") {
  const AttentionSize size{1, 5, 5, 2, 1, 8};
  const AttentionCase c(size, DType::bf16);
  const AttentionCase other(size, DType::f16);
  const Tensor lse = c.rows();
  const Tensor delta = c.rows();
  const auto attend_with = [&](const Tensor& k, const Tensor& v, const Tensor& out) {
    kernels::attention(c.shape, c.const_heads(c.q), c.const_heads(k), c.const_heads(v),
                       c.heads(out), lse.as<float>(), stream);
  };
  const auto differentiate_with = [&](const Tensor& dout, const Tensor& dq, const Tensor& dv) {
    kernels::attention_backward(c.shape, c.const_heads(c.q), c.const_heads(c.k), c.const_heads(c.v),
                                c.const_heads(c.dout), c.const_heads(dout), lse.as<float>(),
                                delta.as<float>(), c.heads(dq), c.heads(c.keys(21)), c.heads(dv),
                                stream);
  };
  using fourfold::ContractViolation;
  const Tensor out = c.queries(20);
  CHECK_THROWS_AS(attend_with(other.k, c.v, out), ContractViolation);
  CHECK_THROWS_AS(attend_with(c.k, other.v, out), ContractViolation);
  CHECK_THROWS_AS(attend_with(c.k, c.v, other.queries(20)), ContractViolation);
  CHECK_THROWS_AS(differentiate_with(other.dout, c.queries(22), c.keys(23)), ContractViolation);
  CHECK_THROWS_AS(differentiate_with(c.dout, other.queries(22), c.keys(23)), ContractViolation);
  CHECK_THROWS_AS(differentiate_with(c.dout, c.queries(22), other.keys(23)), ContractViolation);
  CHECK_NOTHROW(attend_with(c.k, c.v, out));
}

TEST_CASE("a shape of no heads is a contract violation in each pass", "[attention]") {
  AttentionCase c({1, 5, 5, 2, 1, 8}, DType::f32);
  const Tensor out = c.queries(20);
  const Tensor lse = c.rows();
  const Tensor delta = c.rows();
  const auto delta_of = [&] {
    kernels::attention_delta(c.shape, c.const_heads(out), c.const_heads(c.dout), delta.as<float>(),
                             stream);
  };
  CHECK_NOTHROW(delta_of());
  c.shape.kv_heads = 0;
  CHECK_THROWS_AS(delta_of(), fourfold::ContractViolation);
  CHECK_THROWS_AS(attend(kernels::attention, c, out, lse), fourfold::ContractViolation);
  CHECK_THROWS_AS(differentiate(kernels::attention_backward, c, out, lse),
                  fourfold::ContractViolation);
}

TEST_CASE("a head that is too wide for a device is a contract violation there", "[attention]") {
  const AttentionCase c({1, 3, 3, 2, 1, 257}, DType::f32);
  const Tensor out = c.queries(20);
  const Tensor lse = c.rows();
  attend(kernels::reference::attention, c, out, lse);
  if (fourfold::device::has_own_memory) {
    CHECK(kernels::most_head_dim() == 256);
    CHECK_THROWS_AS(attend(kernels::attention, c, out, lse), fourfold::ContractViolation);
    CHECK_THROWS_AS(differentiate(kernels::attention_backward, c, out, lse),
                    fourfold::ContractViolation);
  } else {
    CHECK_NOTHROW(attend(kernels::attention, c, out, lse));
    CHECK_NOTHROW(differentiate(kernels::attention_backward, c, out, lse));
  }
}
#endif
