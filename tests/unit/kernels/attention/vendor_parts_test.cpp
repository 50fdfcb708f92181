// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Attention over parts of the keys where the vendor's library computes them: each part rounded to
// 16 bits, and added up in f32.
#include "attention/attention_backend.hpp"
#include "vectors/random_tensor.hpp"

#include <fourfold/kernels/attention.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

using namespace fourfold;
using device::Tensor;
using kernels::AttentionShape;
using kernels::ConstHeads;
using kernels::Heads;
using kernels::Write;

namespace {

constexpr device::StreamRef stream;
constexpr std::int64_t margin = 8;  // elements of something else at both ends of a row

Heads heads_of(const Tensor& x, std::int64_t token = 0) {
  const std::int64_t width = x.shape()[2];
  const std::int64_t first = token * width + margin;
  return {static_cast<std::byte*>(x.view().data()) +
              first * static_cast<std::int64_t>(size_in_bytes(x.view().dtype())),
          x.view().dtype(), x.shape()[1] * width, width};
}
ConstHeads reads(const Tensor& x, std::int64_t token = 0) {
  return kernels::read_only(heads_of(x, token));
}

/// One chunk of queries, and the keys of it and of those before it, of which a ring brings its own
/// first: the others it sees all of.
struct Ring {
  Ring(std::int64_t chunk, std::int64_t chunks, std::int64_t heads, std::int64_t kv_heads,
       std::int64_t head_dim, DType type)
      : shape{.batch = 2,
              .query_tokens = chunk,
              .key_tokens = chunk * chunks,
              .heads = heads,
              .kv_heads = kv_heads,
              .head_dim = head_dim,
              .scale = 1.5F / std::sqrt(static_cast<float>(head_dim)),
              .query_offset = chunk * (chunks - 1)},
        dtype(type),
        q(queries(dtype, 1)),
        k(keys(dtype, 2)),
        v(keys(dtype, 3)),
        dout(queries(dtype, 4)) {}

  Tensor queries(DType type, std::uint64_t seed) const {
    return test::random_tensor(
        type, {shape.batch, shape.query_tokens, shape.heads * shape.head_dim + 2 * margin}, seed);
  }
  Tensor keys(DType type, std::uint64_t seed) const {
    return test::random_tensor(
        type, {shape.batch, shape.key_tokens, shape.kv_heads * shape.head_dim + 2 * margin}, seed);
  }
  Tensor rows() const { return Tensor(DType::f32, {shape.batch, shape.heads, shape.query_tokens}); }
  /// Where the parts begin, in the order in which they come.
  std::vector<std::int64_t> parts() const {
    std::vector<std::int64_t> at;
    for (std::int64_t key = shape.query_offset; key >= 0; key -= shape.query_tokens) {
      at.push_back(key);
    }
    return at;
  }
  AttentionShape part(std::int64_t key) const {
    AttentionShape part = shape;
    part.key_tokens = shape.query_tokens;
    part.causal = key == shape.query_offset;
    part.query_offset = 0;
    return part;
  }
  /// Attention over all keys, by the reference.
  void whole(const Tensor& out, const Tensor& lse) const {
    kernels::reference::attention(shape, reads(q), reads(k), reads(v), heads_of(out),
                                  lse.as<float>(), stream);
  }

  AttentionShape shape;
  DType dtype;
  Tensor q;
  Tensor k;
  Tensor v;
  Tensor dout;
};

Ring any_ring() {
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  switch (GENERATE(0, 1, 2, 3)) {
    case 0:
      return {21, 3, 4, 2, 64, dtype};
    case 1:
      return {64, 2, 3, 3, 128, dtype};
    case 2:
      return {2, 4, 6, 1, 8, dtype};
    default:
      return {35, 1, 2, 2, 80, dtype};
  }
}

void skip_unless_served(const Ring& ring) {
  const ConstHeads none{nullptr, ring.dtype, 0, ring.shape.heads * ring.shape.head_dim};
  if (!kernels::vendor_would_serve({ring.part(0), false, none, none, none, none})) {
    SKIP("no library of a vendor computes attention here");
  }
}

/// sum += factor(b, n, t) * part in the features that are meant.
template <class Factor>
void add_part(std::vector<double>& sum, const Tensor& part, std::int64_t head_dim,
              const Factor& factor) {
  const std::int64_t width = part.shape()[2];
  for (std::int64_t i = 0; i < part.shape().elements(); ++i) {
    const std::int64_t feature = i % width - margin;
    if (feature >= 0 && feature < width - 2 * margin) {
      const std::int64_t row = i / width;
      sum[static_cast<std::size_t>(i)] +=
          factor(row / part.shape()[1], feature / head_dim, row % part.shape()[1]) *
          test::element(part, i);
    }
  }
}
std::vector<double> zeros_like(const Tensor& x) {
  return std::vector<double>(static_cast<std::size_t>(x.shape().elements()));
}
constexpr auto once = [](auto... /*place*/) { return 1.0; };

/// The largest difference from what is expected, as a share of the largest of that; infinite where
/// something else was written to.
double off(const Tensor& got, const std::vector<double>& expected, const Tensor& before) {
  const std::int64_t width = got.shape()[2];
  double largest = 1e-30;
  double worst = 0;
  for (std::int64_t i = 0; i < got.shape().elements(); ++i) {
    const std::int64_t feature = i % width;
    if (feature < margin || feature >= width - margin) {
      worst = test::element(got, i) == test::element(before, i) ? worst : INFINITY;
      continue;
    }
    const double want = expected[static_cast<std::size_t>(i)];
    worst = std::max(worst, std::fabs(test::element(got, i) - want));
    largest = std::max(largest, std::fabs(want));
  }
  return worst / largest;
}

double tolerance(DType dtype) {
  return 3 * test::last_place(dtype);
}

}  // namespace

TEST_CASE("what the library attends to is merged in f32", "[attention]") {
  const Ring ring = any_ring();
  skip_unless_served(ring);
  CAPTURE(name(ring.dtype), ring.shape.query_tokens, ring.shape.head_dim);
  const Tensor out = ring.queries(DType::f32, 20);
  const Tensor lse = ring.rows();
  std::vector<Tensor> part_outs;
  std::vector<Tensor> part_lses;
  for (const std::int64_t key : ring.parts()) {
    const auto attend = part_outs.empty() ? kernels::attention : kernels::attention_merge;
    attend(ring.part(key), reads(ring.q), reads(ring.k, key), reads(ring.v, key), heads_of(out),
           lse.as<float>(), stream);
    part_outs.push_back(ring.queries(ring.dtype, 21));
    part_lses.push_back(ring.rows());
    kernels::attention(ring.part(key), reads(ring.q), reads(ring.k, key), reads(ring.v, key),
                       heads_of(part_outs.back()), part_lses.back().as<float>(), stream);
  }
  const Tensor whole = ring.queries(DType::f32, 20);
  const Tensor whole_lse = ring.rows();
  ring.whole(whole, whole_lse);
  // Parts of 16 bits, weighed by the closed form: anything else that rounds, or does not, is seen.
  std::vector<double> expected = zeros_like(out);
  for (std::size_t i = 0; i < part_outs.size(); ++i) {
    add_part(expected, part_outs[i], ring.shape.head_dim,
             [&](std::int64_t b, std::int64_t n, std::int64_t t) {
               const std::int64_t query = (b * ring.shape.heads + n) * ring.shape.query_tokens + t;
               return std::exp(static_cast<double>(part_lses[i].as<float>()[query]) -
                               static_cast<double>(whole_lse.as<float>()[query]));
             });
  }
  CHECK(off(out, expected, ring.queries(DType::f32, 20)) <= 1e-5);
  CHECK(test::difference(out, whole) <= tolerance(ring.dtype));
  CHECK(test::difference(lse, whole_lse) <= 1e-5);
}

TEST_CASE("gradients that the library makes of parts add up in f32", "[attention]") {
  const Ring ring = any_ring();
  skip_unless_served(ring);
  const Write write_dkv = GENERATE(Write::replace, Write::accumulate);
  CAPTURE(name(ring.dtype), ring.shape.query_tokens, ring.shape.head_dim);
  const Tensor out = ring.queries(ring.dtype, 20);
  const Tensor lse = ring.rows();
  ring.whole(out, lse);
  const Tensor delta = ring.rows();
  kernels::attention_delta(ring.shape, reads(out), reads(ring.dout), delta.as<float>(), stream);
  const Tensor dq = ring.queries(DType::f32, 21);
  const Tensor dk = ring.keys(DType::f32, 22);
  const Tensor dv = ring.keys(DType::f32, 23);
  std::vector<double> expected_q = zeros_like(dq);
  std::vector<double> expected_k = zeros_like(dk);
  std::vector<double> expected_v = zeros_like(dv);
  if (write_dkv == Write::accumulate) {
    add_part(expected_k, dk, ring.shape.head_dim, once);
    add_part(expected_v, dv, ring.shape.head_dim, once);
  }
  const Tensor part_k = ring.keys(ring.dtype, 24);
  const Tensor part_v = ring.keys(ring.dtype, 25);
  Write write_dq = Write::replace;
  for (const std::int64_t key : ring.parts()) {
    const AttentionShape part = ring.part(key);
    kernels::attention_backward_part(part, reads(ring.q), reads(ring.k, key), reads(ring.v, key),
                                     reads(out), reads(ring.dout), lse.as<float>(),
                                     delta.as<float>(), heads_of(dq), write_dq, heads_of(dk, key),
                                     heads_of(dv, key), write_dkv, stream);
    write_dq = Write::accumulate;
    const Tensor part_q = ring.queries(ring.dtype, 26);
    const Tensor unused = ring.rows();
    kernels::attention_backward(part, reads(ring.q), reads(ring.k, key), reads(ring.v, key),
                                reads(out), reads(ring.dout), lse.as<float>(), unused.as<float>(),
                                heads_of(part_q), heads_of(part_k, key), heads_of(part_v, key),
                                stream);
    add_part(expected_q, part_q, ring.shape.head_dim, once);
  }
  add_part(expected_k, part_k, ring.shape.head_dim, once);
  add_part(expected_v, part_v, ring.shape.head_dim, once);
  CHECK(off(dq, expected_q, ring.queries(DType::f32, 21)) <= 1e-6);
  CHECK(off(dk, expected_k, ring.keys(DType::f32, 22)) <= 1e-6);
  CHECK(off(dv, expected_v, ring.keys(DType::f32, 23)) <= 1e-6);
  if (write_dkv == Write::accumulate) {
    return;
  }
  const Tensor whole_q = ring.queries(DType::f32, 21);
  const Tensor whole_k = ring.keys(DType::f32, 22);
  const Tensor whole_v = ring.keys(DType::f32, 23);
  kernels::reference::attention_backward(ring.shape, reads(ring.q), reads(ring.k), reads(ring.v),
                                         reads(out), reads(ring.dout), lse.as<float>(),
                                         delta.as<float>(), heads_of(whole_q), heads_of(whole_k),
                                         heads_of(whole_v), stream);
  CHECK(test::difference(dq, whole_q) <= tolerance(ring.dtype));
  CHECK(test::difference(dk, whole_k) <= tolerance(ring.dtype));
  CHECK(test::difference(dv, whole_v) <= tolerance(ring.dtype));
}

TEST_CASE("a part whose output is not at hand is not the library's", "[attention]") {
  const Ring ring(21, 1, 4, 2, 64, DType::bf16);
  skip_unless_served(ring);
  const Tensor out = ring.queries(ring.dtype, 20);
  const Tensor lse = ring.rows();
  ring.whole(out, lse);
  const Tensor delta = ring.rows();
  kernels::attention_delta(ring.shape, reads(out), reads(ring.dout), delta.as<float>(), stream);
  const auto gradient = [&](ConstHeads given_out) {
    Tensor dq = ring.queries(DType::f32, 21);
    const Tensor dk = ring.keys(DType::f32, 22);
    const Tensor dv = ring.keys(DType::f32, 23);
    kernels::attention_backward_part(ring.shape, reads(ring.q), reads(ring.k), reads(ring.v),
                                     given_out, reads(ring.dout), lse.as<float>(),
                                     delta.as<float>(), heads_of(dq), Write::replace, heads_of(dk),
                                     heads_of(dv), Write::replace, stream);
    return dq;
  };
  const Tensor by_library = gradient(reads(out));
  const Tensor by_portable = gradient({});
  CHECK_FALSE(test::same_bits(by_library, by_portable));
  CHECK(test::difference(by_library, by_portable) <= tolerance(ring.dtype));
}
