// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Attention of the vendor's library by itself, without the rest of the kernels: on a GPU only.
#include "attention/attention_backend.hpp"
#include "vectors/random_tensor.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/kernels/attention.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <thread>

using namespace fourfold;
using device::Tensor;
using kernels::AttentionCall;
using kernels::AttentionShape;
using kernels::Heads;

namespace {

void skip_without_gpu() {
  try {
    static_cast<void>(device::device_facts());
  } catch (const UserError& error) {
    SKIP(error.what());
  }
  if (!kernels::cudnn_library().defect.empty()) {
    SKIP(kernels::cudnn_library().defect);
  }
}

struct Size {
  std::int64_t batch;
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  bool causal = true;
};

/// Attention over queries, keys and values that lie side by side in rows, with 8 elements of
/// something else at both ends; gradients likewise.
class Case {
 public:
  Case(const Size& size, DType dtype, std::uint64_t seed = 1)
      : shape{.batch = size.batch,
              .query_tokens = size.queries,
              .key_tokens = size.keys,
              .heads = size.heads,
              .kv_heads = size.kv_heads,
              .head_dim = size.head_dim,
              .scale = 1.5F / std::sqrt(static_cast<float>(size.head_dim)),
              .causal = size.causal,
              .query_offset = size.keys - size.queries},
        dtype_(dtype),
        inputs(fused(seed)),
        dout(rows(seed + 1)) {}

  Tensor fused(std::uint64_t seed) const {
    return test::random_tensor(dtype_, {shape.batch, shape.key_tokens, width()}, seed);
  }
  Tensor rows(std::uint64_t seed) const {
    return test::random_tensor(
        dtype_, {shape.batch, shape.query_tokens, shape.heads * shape.head_dim}, seed);
  }
  Tensor lse() const { return Tensor(DType::f32, {shape.batch, shape.heads, shape.query_tokens}); }
  static Heads whole(const Tensor& x) {
    return {x.view().data(), x.view().dtype(), x.shape()[1] * x.shape()[2], x.shape()[2]};
  }
  /// The last tokens are the queries'.
  Heads q(const Tensor& x) const { return at(x, margin, shape.key_tokens - shape.query_tokens); }
  Heads k(const Tensor& x) const { return at(x, margin + shape.heads * shape.head_dim, 0); }
  Heads v(const Tensor& x) const {
    return at(x, margin + (shape.heads + shape.kv_heads) * shape.head_dim, 0);
  }

  AttentionCall forward(const Tensor& out, const Tensor& lse) const {
    return {shape,
            false,
            read_only(q(inputs)),
            read_only(k(inputs)),
            read_only(v(inputs)),
            read_only(whole(out)),
            lse.as<float>()};
  }
  AttentionCall backward(const Tensor& out, const Tensor& lse, const Tensor& gradients) const {
    AttentionCall call = forward(out, lse);
    call.is_backward = true;
    call.dout = read_only(whole(dout));
    call.dq = read_only(q(gradients));
    call.dk = read_only(k(gradients));
    call.dv = read_only(v(gradients));
    return call;
  }
  void reference(const Tensor& out, const Tensor& lse, const Tensor& gradients) const {
    const auto in = [](const Heads& x) { return kernels::read_only(x); };
    kernels::reference::attention(shape, in(q(inputs)), in(k(inputs)), in(v(inputs)), whole(out),
                                  lse.as<float>(), {});
    const Tensor delta = this->lse();
    kernels::reference::attention_backward(
        shape, in(q(inputs)), in(k(inputs)), in(v(inputs)), in(whole(out)), in(whole(dout)),
        lse.as<float>(), delta.as<float>(), q(gradients), k(gradients), v(gradients), {});
  }

  AttentionShape shape;

 private:
  static constexpr std::int64_t margin = 8;
  std::int64_t width() const {
    return (shape.heads + 2 * shape.kv_heads) * shape.head_dim + 2 * margin;
  }
  Heads at(const Tensor& x, std::int64_t column, std::int64_t token) const {
    auto* const data = static_cast<std::byte*>(x.view().data());
    return {data + (token * width() + column) * size_in_bytes(dtype_), dtype_,
            shape.key_tokens * width(), width()};
  }
  DType dtype_;

 public:
  Tensor inputs;
  Tensor dout;
};

/// cuDNN rounds softmax and its gradient to 16 bits before it multiplies.
double tolerance(DType dtype) {
  return 3 * test::last_place(dtype);
}

}  // namespace

TEST_CASE("cuDNN's attention agrees with the reference", "[attention]") {
  skip_without_gpu();
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  const Size size = GENERATE(
      Size{2, 128, 128, 3, 3, 64}, Size{2, 77, 77, 4, 2, 64}, Size{1, 129, 129, 5, 1, 80},
      Size{2, 200, 200, 4, 4, 128}, Size{1, 257, 257, 8, 2, 128}, Size{2, 65, 65, 6, 2, 64, false},
      Size{1, 100, 300, 2, 1, 64}, Size{1, 100, 300, 2, 2, 128, false}, Size{1, 2, 2, 1, 1, 8});
  const bool deterministic = GENERATE(true, false);
  CAPTURE(name(dtype), size.queries, size.keys, size.heads, size.kv_heads, size.head_dim,
          size.causal, deterministic);
  Case c(size, dtype);
  c.shape.deterministic = deterministic;
  const Tensor out = c.rows(20);
  const Tensor lse = c.lse();
  // The same garbage in both, so that what lies around the gradients is compared too.
  const Tensor gradients = c.fused(21);
  REQUIRE(kernels::vendor_attention(c.forward(out, lse), {}));
  REQUIRE(kernels::vendor_attention(c.backward(out, lse, gradients), {}));
  const Tensor out_expected = c.rows(20);
  const Tensor lse_expected = c.lse();
  const Tensor gradients_expected = c.fused(21);
  c.reference(out_expected, lse_expected, gradients_expected);
  CHECK(test::difference(out, out_expected) <= tolerance(dtype));
  CHECK(test::difference(lse, lse_expected) <= 1e-4);
  CHECK(test::difference(gradients, gradients_expected) <= tolerance(dtype));
}

TEST_CASE("cuDNN's attention gives the same bits, on streams and threads", "[attention]") {
  skip_without_gpu();
  const Case c({4, 512, 512, 8, 4, 64}, DType::bf16);
  struct Run {
    Tensor out;
    Tensor lse;
    Tensor gradients;
  };
  const auto run = [&](Run& result) {
    const device::Stream stream;
    REQUIRE(kernels::vendor_attention(c.forward(result.out, result.lse), stream));
    REQUIRE(
        kernels::vendor_attention(c.backward(result.out, result.lse, result.gradients), stream));
    stream.ref().synchronize();
  };
  const auto fresh = [&] { return Run{c.rows(20), c.lse(), c.fused(21)}; };
  Run first = fresh();
  run(first);
  for (const bool on_thread : {false, true}) {
    Run again = fresh();
    if (on_thread) {
      std::thread([&] { run(again); }).join();
    } else {
      run(again);
    }
    CHECK(test::same_bits(again.out, first.out));
    CHECK(test::same_bits(again.lse, first.lse));
    CHECK(test::same_bits(again.gradients, first.gradients));
  }
}

TEST_CASE("what cuDNN does not serve is left untouched", "[attention]") {
  skip_without_gpu();
  const auto [size, dtype] = GENERATE(std::pair{Size{2, 64, 64, 2, 2, 64}, DType::f32},
                                      std::pair{Size{2, 64, 64, 2, 2, 60}, DType::bf16},
                                      std::pair{Size{2, 1, 64, 2, 2, 64}, DType::bf16});
  const Case c(size, dtype);
  const Tensor out = c.rows(20);
  const Tensor lse = c.lse();
  CHECK_FALSE(kernels::vendor_attention(c.forward(out, lse), {}));
  CHECK(test::same_bits(out, c.rows(20)));
}
