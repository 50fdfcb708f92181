// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "attention/attention_backend.hpp"

#include <fourfold/kernels/library_memory.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <vector>

using namespace fourfold;
using kernels::AttentionShape;

namespace {

constexpr int h100 = 90;

AttentionShape of(std::int64_t heads, std::int64_t kv_heads, std::int64_t queries,
                  std::int64_t keys, std::int64_t head_dim) {
  return {.batch = 4,
          .query_tokens = queries,
          .key_tokens = keys,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = head_dim};
}

AttentionShape gpt2() {
  return of(12, 12, 1024, 1024, 64);
}

}  // namespace

// What plans of cuDNN 9.19 say they need.
TEST_CASE("the memory of attention's backward pass is what cuDNN asks for", "[library_memory]") {
  const auto bytes = [](AttentionShape shape, int capability, bool deterministic = true) {
    shape.deterministic = deterministic;
    return kernels::attention_workspace_bytes(shape, capability);
  };
  CHECK(bytes(gpt2(), 90) == 100860160);
  CHECK(bytes(gpt2(), 90, false) == 12779776);
  CHECK(bytes(of(32, 8, 1024, 1024, 128), 90) == 336068864);
  CHECK(bytes(of(32, 8, 1024, 1024, 128), 90, false) == 134742272);
  CHECK(bytes(of(25, 25, 1000, 1000, 64), 90) == 210115456);
  CHECK(bytes(of(25, 25, 77, 77, 64), 90) == 3307856);
  CHECK(bytes(of(25, 25, 100, 300, 64), 90) == 9870656);
  // These say 128 bytes less, and 256.
  CHECK(bytes(of(25, 25, 100, 300, 64), 80) == 8232128 + 128);
  CHECK(bytes(gpt2(), 80, false) == 25362560 + 128);
  CHECK(bytes(gpt2(), 100) == 196608 + 256);
  CHECK(bytes(of(32, 8, 1024, 1024, 128), 100) == 134742016 + 256);
  CHECK(bytes(of(32, 8, 1024, 1024, 128), 100, false) == 134742144 + 128);
}

TEST_CASE("libraries take what their largest call takes", "[library_memory]") {
  constexpr std::int64_t of_products = 32 << 20;
  using kernels::AttentionUse;
  const auto bytes = [](const std::vector<AttentionUse>& uses, DType dtype = DType::bf16,
                        int capability = h100) {
    return kernels::library_memory_bytes(uses, dtype, capability);
  };
  AttentionShape small = gpt2();
  small.deterministic = false;
  CHECK(bytes({}) == of_products);
  CHECK(bytes({AttentionUse{gpt2()}}) == 100860160);  // as above
  CHECK(bytes({AttentionUse{small}}) == of_products);
  CHECK(bytes({AttentionUse{small}, AttentionUse{gpt2()}, AttentionUse{small}}) == 100860160);
  CHECK(bytes({AttentionUse{gpt2()}}, DType::f32) == of_products);
  CHECK(bytes({AttentionUse{gpt2()}}, DType::bf16, 100) == of_products);
  // Staged beside it: 4 x 1024 tokens of 768 features take 6 MiB in 16 bits, their lse 192 KiB.
  constexpr std::int64_t mib = 1 << 20;
  CHECK(bytes({AttentionUse{gpt2(), true, true}}) == 100860160 + 18 * mib);
  CHECK(bytes({AttentionUse{gpt2(), false, true}}) == 100860160 + 12 * mib);
  CHECK(bytes({AttentionUse{gpt2(), true, false}}) == 100860160 + 6 * mib + 196608);
  CHECK(bytes({AttentionUse{gpt2(), true, true}}, DType::f32) == of_products);
  // Of wide heads only the forward pass is cuDNN's before and after Hopper.
  AttentionShape wide = gpt2();
  wide.head_dim = 192;
  CHECK(bytes({AttentionUse{wide, true, true}}, DType::bf16, 100) ==
        of_products + 18 * mib + 196608);
  CHECK(bytes({AttentionUse{wide, true, true}}) > of_products + 54 * mib);
  AttentionShape another_mask = gpt2();
  another_mask.query_offset = 1;
  CHECK(bytes({AttentionUse{another_mask, true, true}}) == of_products);
}
