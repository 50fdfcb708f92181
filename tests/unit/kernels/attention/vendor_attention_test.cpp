// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Which calls of attention go to cuDNN, without it.
#include "attention/attention_backend.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstddef>
#include <string>

using namespace fourfold;
using kernels::AttentionCall;
using kernels::AttentionMask;
using kernels::AttentionShape;
using kernels::ConstHeads;
using kernels::vendor_serves;

namespace {

constexpr int h100 = 90;

AttentionShape gpt2() {
  return {.batch = 4,
          .query_tokens = 1024,
          .key_tokens = 1024,
          .heads = 12,
          .kv_heads = 12,
          .head_dim = 64};
}

/// Queries, keys and values side by side in rows, as a block leaves them.
AttentionCall packed(const AttentionShape& shape, DType dtype, bool is_backward) {
  alignas(16) static const std::byte memory[65536]{};
  const std::int64_t width = (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
  const auto at = [&](std::int64_t column) {
    return ConstHeads{memory + 2 * column, dtype, shape.query_tokens * width, width};
  };
  AttentionCall call{.shape = shape, .is_backward = is_backward};
  call.q = call.dq = call.out = call.dout = at(0);
  call.k = call.dk = at(shape.heads * shape.head_dim);
  call.v = call.dv = at((shape.heads + shape.kv_heads) * shape.head_dim);
  return call;
}

AttentionMask mask(std::int64_t queries, std::int64_t keys, std::int64_t offset,
                   bool causal = true) {
  AttentionShape shape = gpt2();
  shape.query_tokens = queries;
  shape.key_tokens = keys;
  shape.query_offset = offset;
  shape.causal = causal;
  return mask_of(shape);
}

/// Whether gpt2() is served when `change` has been made to its call.
template <class Change>
bool serves(bool is_backward, const Change& change, DType dtype = DType::bf16,
            int compute_capability = h100) {
  AttentionCall call = packed(gpt2(), dtype, is_backward);
  change(call);
  return vendor_serves(call, compute_capability);
}

}  // namespace

TEST_CASE("cuDNN has words for the masks of training and of gathered keys", "[attention]") {
  CHECK(mask(64, 64, 0) == AttentionMask::top_left);
  CHECK(mask(64, 256, 192) == AttentionMask::bottom_right);
  CHECK(mask(64, 64, 0, false) == AttentionMask::none);
  CHECK(mask(64, 256, 5, false) == AttentionMask::none);
  CHECK(mask(64, 64, 63) == AttentionMask::none);  // each query sees each key
  CHECK(mask(64, 64, 62) == AttentionMask::other);
  CHECK(mask(64, 256, 0) == AttentionMask::other);    // keys that nobody sees
  CHECK(mask(64, 256, 191) == AttentionMask::other);  // one of them
  CHECK(mask(256, 64, 0) == AttentionMask::other);
  CHECK(mask(256, 64, -192) == AttentionMask::other);  // queries that see nothing
}

TEST_CASE("cuDNN gets the attention of training in 16 bits", "[attention]") {
  const bool is_backward = GENERATE(false, true);
  const auto nothing = [](AttentionCall& /*call*/) {};
  CHECK(serves(is_backward, nothing, DType::bf16));
  CHECK(serves(is_backward, nothing, DType::f16));
  CHECK_FALSE(serves(is_backward, nothing, DType::f32));
  CHECK(serves(is_backward, nothing, DType::bf16, 80));
  CHECK(serves(is_backward, nothing, DType::bf16, 100));
  CHECK_FALSE(serves(is_backward, nothing, DType::bf16, 75));
  CHECK(serves(is_backward,
               [](AttentionCall& call) { call.shape.query_tokens = call.shape.key_tokens = 77; }));
  CHECK(serves(is_backward, [](AttentionCall& call) { call.shape.kv_heads = 4; }));
}

TEST_CASE("what cuDNN does not take goes to the portable kernel", "[attention]") {
  const bool is_backward = GENERATE(false, true);
  const auto refused = [&](const auto& change) { return !serves(is_backward, change); };
  CHECK(refused([](AttentionCall& call) { call.shape.batch = 0; }));
  CHECK(refused([](AttentionCall& call) { call.shape.query_tokens = call.shape.key_tokens = 0; }));
  CHECK(refused([](AttentionCall& call) { call.shape.query_tokens = call.shape.key_tokens = 1; }));
  CHECK(refused([](AttentionCall& call) {  // one new token
    call.shape.query_tokens = 1;
    call.shape.query_offset = 1023;
  }));
  CHECK(refused([](AttentionCall& call) { call.shape.query_tokens = 77; }));  // another mask
  CHECK(refused([](AttentionCall& call) { call.shape.kv_heads = 5; }));
  CHECK(refused([](AttentionCall& call) { call.shape.head_dim = 60; }));
  CHECK(refused([](AttentionCall& call) { call.shape.head_dim = 264; }));
  CHECK(refused([](AttentionCall& call) { call.out.dtype = DType::f32; }));  // of merged parts
  CHECK(refused([](AttentionCall& call) { call.k.dtype = DType::f16; }));
  CHECK(refused(
      [](AttentionCall& call) { call.v.data = static_cast<const std::byte*>(call.v.data) + 8; }));
  CHECK(refused([](AttentionCall& call) { call.q.token_stride += 4; }));
  CHECK(refused([](AttentionCall& call) { call.k.batch_stride += 4; }));
  if (is_backward) {
    CHECK(refused([](AttentionCall& call) { call.dk.dtype = DType::f32; }));
    CHECK(refused([](AttentionCall& call) { call.dv.token_stride += 4; }));
  }
}

TEST_CASE("the stride of a single sequence does not matter", "[attention]") {
  CHECK(serves(true, [](AttentionCall& call) {
    call.shape.batch = 1;
    call.q.batch_stride = call.dout.batch_stride = 3;
  }));
}

TEST_CASE("wide heads go backward through cuDNN on Hopper only", "[attention]") {
  const auto wide = [](AttentionCall& call) { call.shape.head_dim = 192; };
  for (const int capability : {80, 90, 100}) {
    CHECK(serves(false, wide, DType::bf16, capability));
    CHECK(serves(true, wide, DType::bf16, capability) == (capability == 90));
  }
}

TEST_CASE("a cuDNN that is missing, old or broken is told from one that serves", "[attention]") {
  CHECK(kernels::cudnn_defect(91900).empty());
  CHECK(kernels::cudnn_defect(91002).empty());
  CHECK(kernels::cudnn_defect(90700).empty());
  CHECK(kernels::cudnn_defect(92700).empty());
  CHECK(kernels::cudnn_defect(0).find("LD_LIBRARY_PATH") != std::string::npos);
  CHECK(kernels::cudnn_defect(90600).find("cuDNN 9.6.0") != std::string::npos);
  CHECK(kernels::cudnn_defect(100000).find("cuDNN 10.0.0") != std::string::npos);
  CHECK(kernels::cudnn_defect(91000).find("9.10.2") != std::string::npos);
  CHECK(kernels::cudnn_defect(91001).find("9.10.2") != std::string::npos);
}
