// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Attention over one part of the keys after the other.
#include "attention_case.hpp"

#include <fourfold/kernels/attention.hpp>
#include <fourfold/kernels/operands.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <limits>
#include <vector>

using namespace fourfold;
using device::Tensor;
using kernels::AttentionShape;
using kernels::ConstHeads;
using kernels::Heads;
using kernels::Write;
using test::AttentionCase;
using test::AttentionSize;

namespace {

constexpr device::StreamRef stream;

template <class Pointer>
kernels::BasicHeads<Pointer> from_token(kernels::BasicHeads<Pointer> x, std::int64_t token) {
  using Bytes = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const std::byte,
                                   std::byte>;
  x.data = static_cast<Bytes*>(x.data) +
           token * x.token_stride * static_cast<std::int64_t>(size_in_bytes(x.dtype));
  return x;
}

/// The keys [begin, end) of a case, as the queries see them.
AttentionShape part_of(const AttentionCase& c, std::int64_t begin, std::int64_t end) {
  AttentionShape shape = c.shape;
  shape.key_tokens = end - begin;
  shape.query_offset -= begin;
  return shape;
}

/// Where the keys are cut.
std::vector<std::int64_t> cuts(const AttentionCase& c, std::int64_t parts) {
  std::vector<std::int64_t> at;
  for (std::int64_t i = 0; i <= parts; ++i) {
    at.push_back(c.shape.key_tokens * i / parts);
  }
  return at;
}

/// f32 rows of heads like those of the queries (or keys), with something in them.
Tensor f32_like(const Tensor& x, std::uint64_t seed) {
  return test::random_tensor(DType::f32, x.shape(), seed);
}

struct Body {
  decltype(&kernels::attention) attention = kernels::attention;
  decltype(&kernels::attention_merge) merge = kernels::attention_merge;
  decltype(&kernels::attention_delta) delta = kernels::attention_delta;
  decltype(&kernels::attention_backward_part) backward_part = kernels::attention_backward_part;
};

Body reference_body() {
  return {kernels::reference::attention, kernels::reference::attention_merge,
          kernels::reference::attention_delta, kernels::reference::attention_backward_part};
}

/// Last part first, as a ring brings the parts in any order.
void attend_in_parts(const Body& body, const AttentionCase& c, std::int64_t parts,
                     const Tensor& out, const Tensor& lse) {
  const auto at = cuts(c, parts);
  for (std::size_t i = at.size() - 1; i-- > 0;) {
    const AttentionShape shape = part_of(c, at[i], at[i + 1]);
    const ConstHeads k = from_token(c.const_heads(c.k), at[i]);
    const ConstHeads v = from_token(c.const_heads(c.v), at[i]);
    const auto attend = i + 2 == at.size() ? body.attention : body.merge;
    attend(shape, c.const_heads(c.q), k, v, c.heads(out), lse.as<float>(), stream);
  }
}

AttentionSize any_size() {
  return GENERATE(
      AttentionSize{1, 1, 1, 1, 1, 1}, AttentionSize{2, 17, 17, 5, 5, 13},
      AttentionSize{1, 401, 401, 2, 1, 5}, AttentionSize{2, 65, 130, 4, 2, 64, true, 65},
      AttentionSize{1, 129, 65, 2, 1, 13, true, -30}, AttentionSize{1, 33, 199, 3, 1, 16, false});
}

}  // namespace

TEST_CASE("attention over parts of the keys merges to attention over all", "[attention]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const AttentionSize size = any_size();
  const std::int64_t parts = GENERATE(1, 2, 3, 16);
  CAPTURE(name(dtype), size, parts);
  const AttentionCase c(size, dtype);
  const Tensor expected = f32_like(c.q, 20);
  const Tensor expected_lse = c.rows();
  kernels::reference::attention(c.shape, c.const_heads(c.q), c.const_heads(c.k), c.const_heads(c.v),
                                c.heads(expected), expected_lse.as<float>(), stream);
  for (const Body& body : {Body{}, reference_body()}) {
    const Tensor out = f32_like(c.q, 20);
    const Tensor lse = c.rows();
    attend_in_parts(body, c, parts, out, lse);
    CHECK(test::difference(out, expected) <= 5e-6);  // 16-bit operands, but nothing rounded between
    for (std::int64_t i = 0; i < lse.shape().elements(); ++i) {
      const float want = expected_lse.as<float>()[i];
      const float got = lse.as<float>()[i];
      REQUIRE((got == want || std::fabs(got - want) <= 3e-6));
    }
  }
}

TEST_CASE("keys that nobody sees change no bit of what was merged", "[attention]") {
  const AttentionCase c({2, 37, 37, 4, 2, 8}, DType::f32);
  const Tensor out = c.queries(20);
  const Tensor lse = c.rows();
  const auto merge = [&](std::int64_t offset) {
    AttentionShape shape = c.shape;
    shape.query_offset = offset;
    kernels::attention_merge(shape, c.const_heads(c.q), c.const_heads(c.k), c.const_heads(c.v),
                             c.heads(out), lse.as<float>(), stream);
  };
  kernels::attention(c.shape, c.const_heads(c.q), c.const_heads(c.k), c.const_heads(c.v),
                     c.heads(out), lse.as<float>(), stream);
  const Tensor before = test::copy_of(out);
  const Tensor lse_before = test::copy_of(lse);
  merge(-1000);
  CHECK(test::same_bits(out, before));
  CHECK(test::same_bits(lse, lse_before));
  merge(-20);
  CHECK_FALSE(test::same_bits(out, before));
}

TEST_CASE("the gradients of the parts add up to those of the whole", "[attention]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const AttentionSize size = any_size();
  const std::int64_t parts = GENERATE(1, 3);
  CAPTURE(name(dtype), size, parts);
  const AttentionCase c(size, dtype);
  const Tensor out = f32_like(c.q, 20);
  const Tensor lse = c.rows();
  const Tensor scratch = c.rows();
  kernels::reference::attention(c.shape, c.const_heads(c.q), c.const_heads(c.k), c.const_heads(c.v),
                                c.heads(out), lse.as<float>(), stream);
  const Tensor dq = f32_like(c.q, 21);
  const Tensor dk = f32_like(c.k, 22);
  const Tensor dv = f32_like(c.k, 23);
  kernels::reference::attention_backward(
      c.shape, c.const_heads(c.q), c.const_heads(c.k), c.const_heads(c.v), c.const_heads(out),
      c.const_heads(c.dout), lse.as<float>(), scratch.as<float>(), c.heads(dq), c.heads(dk),
      c.heads(dv), stream);
  for (const Body& body : {Body{}, reference_body()}) {
    // The same garbage in the margins; what is added to starts from zero.
    const Tensor sum_q = f32_like(c.q, 21);
    const Tensor sum_k = f32_like(c.k, 22);
    const Tensor sum_v = f32_like(c.k, 23);
    const Tensor delta = c.rows();
    body.delta(c.shape, c.const_heads(out), c.const_heads(c.dout), delta.as<float>(), stream);
    CHECK(test::difference(delta, scratch) <= 5e-6);
    const auto at = cuts(c, parts);
    for (std::size_t i = 0; i + 1 < at.size(); ++i) {
      // dq adds up over the parts; dk and dv of each part are replaced, then added to as often.
      for (const Write write_dkv : {Write::replace, Write::accumulate}) {
        const bool first = i == 0 && write_dkv == Write::replace;
        body.backward_part(
            part_of(c, at[i], at[i + 1]), c.const_heads(c.q), from_token(c.const_heads(c.k), at[i]),
            from_token(c.const_heads(c.v), at[i]), c.const_heads(out), c.const_heads(c.dout),
            lse.as<float>(), delta.as<float>(), c.heads(sum_q),
            first ? Write::replace : Write::accumulate, from_token(c.heads(sum_k), at[i]),
            from_token(c.heads(sum_v), at[i]), write_dkv, stream);
      }
    }
    const auto check_doubled = [&](const Tensor& sum, const Tensor& expected) {
      const std::int64_t width = sum.shape()[2];
      for (std::int64_t i = 0; i < sum.shape().elements(); ++i) {
        const bool inside =
            i % width >= AttentionCase::margin && i % width < width - AttentionCase::margin;
        sum.as<float>()[i] *= inside ? 0.5F : 1.0F;  // everything was added twice
      }
      CHECK(test::difference(sum, expected) <= 5e-6);
    };
    check_doubled(sum_q, dq);
    check_doubled(sum_k, dk);
    check_doubled(sum_v, dv);
  }
}

TEST_CASE("heads are copied between strides and formats", "[attention]") {
  const DType from = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType to = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t features = GENERATE(1, 7, 64);
  const std::int64_t tokens = GENERATE(0, 1, 9);
  CAPTURE(name(from), name(to), features, tokens);
  const Tensor source = test::random_tensor(from, {3, 10, features + 5}, 1);
  const Tensor got = test::random_tensor(to, {3, 12, features + 2}, 2);
  const Tensor want = test::copy_of(got);
  const auto heads = [](const Tensor& x) {
    return Heads{x.view().data(), x.view().dtype(), x.shape()[1] * x.shape()[2], x.shape()[2]};
  };
  const Heads s = heads(source);
  const ConstHeads in = from_token(ConstHeads{s.data, s.dtype, s.batch_stride, s.token_stride}, 1);
  kernels::copy_heads({3, tokens, features}, in, from_token(heads(got), 2), stream);
  kernels::reference::copy_heads({3, tokens, features}, in, from_token(heads(want), 2), stream);
  CHECK(test::same_bits(got, want));
}
