// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// That cuDNN understands our graphs and has engines for them on GPUs that are not here.
#include "attention/attention_backend.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <dlfcn.h>

#include <string>
#include <tuple>

using namespace fourfold;
using kernels::AttentionCall;
using kernels::AttentionShape;
using kernels::ConstHeads;

namespace {

/// A device in cuDNN's words.
std::string device_text(const std::string& name, int compute_capability, int multiprocessors,
                        int shared_bytes) {
  return R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],)"
         R"("regsPerBlock":65536,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
         R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,)"
         R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
         R"("supportCoopLaunch":1,"totalGlobalMem":85000000000,"smClockRateKHz":1980000,)"
         R"("memClockRateKHz":2619000,"l2CacheSize":52428800,"cudaDeviceId":0,"driverVer":13000,)"
         R"("deviceVer":)" +
         std::to_string(10 * compute_capability) + R"(,"multiProcessorCount":)" +
         std::to_string(multiprocessors) + R"(,"maxSharedMemoryPerBlockOptin":)" +
         std::to_string(shared_bytes) + R"(,"deviceName":")" + name + R"("})";
}

AttentionCall packed(const AttentionShape& shape, DType dtype, bool is_backward) {
  const std::int64_t width = (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
  const auto rows = [&](std::int64_t tokens, std::int64_t row) {
    return ConstHeads{nullptr, dtype, tokens * row, row};
  };
  AttentionCall call{.shape = shape, .is_backward = is_backward};
  call.q = call.dq = rows(shape.query_tokens, width);
  call.k = call.v = call.dk = call.dv = rows(shape.key_tokens, width);
  call.out = call.dout = rows(shape.query_tokens, shape.heads * shape.head_dim);
  return call;
}

}  // namespace

TEST_CASE("cuDNN has engines for the attention that it is to serve", "[engines]") {
  if (!kernels::cudnn_library().defect.empty()) {
    SKIP(kernels::cudnn_library().defect);
  }
  if (dlopen("libcuda.so.1", RTLD_NOW) == nullptr) {
    SKIP("there is neither a driver nor a stand-in for one");
  }
  const auto [name, capability, multiprocessors, shared_bytes] =
      GENERATE(std::tuple{"NVIDIA A100-SXM4-80GB", 80, 108, 166912},
               std::tuple{"NVIDIA H100 80GB HBM3", 90, 132, 232448},
               std::tuple{"NVIDIA B200", 100, 148, 232448});
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  // As one rank has them, and as the parts of a ring and gathered keys are.
  const auto [queries, keys, heads, kv_heads, head_dim, causal] =
      GENERATE(std::tuple{512, 512, 12, 12, 64, false}, std::tuple{512, 1024, 32, 8, 128, false},
               std::tuple{512, 1024, 32, 8, 128, true}, std::tuple{125, 875, 25, 25, 64, true},
               std::tuple{1024, 1024, 12, 12, 64, true}, std::tuple{2048, 2048, 32, 8, 128, true},
               std::tuple{77, 77, 25, 25, 64, true}, std::tuple{1000, 1000, 20, 5, 80, false},
               std::tuple{100, 300, 4, 2, 64, true}, std::tuple{2, 2, 1, 1, 8, true},
               std::tuple{256, 256, 3, 1, 192, true});
  const bool is_backward = GENERATE(false, true);
  const bool deterministic = GENERATE(true, false);
  const AttentionShape shape{.batch = 4,
                             .query_tokens = queries,
                             .key_tokens = keys,
                             .heads = heads,
                             .kv_heads = kv_heads,
                             .head_dim = head_dim,
                             .scale = 0.125F,
                             .causal = causal,
                             .query_offset = keys - queries,
                             .deterministic = deterministic};
  CAPTURE(name, fourfold::name(dtype), queries, keys, heads, kv_heads, head_dim, causal,
          is_backward, deterministic);
  const AttentionCall call = packed(shape, dtype, is_backward);
  const std::string why = refused_by_cudnn(
      call, device_text(name, capability, multiprocessors, shared_bytes), capability);
  if (vendor_serves(call, capability)) {
    CHECK(why == "");
  } else {
    CHECK(why != "");
  }
}

TEST_CASE("cuDNN says why it has no engine", "[engines]") {
  if (!kernels::cudnn_library().defect.empty()) {
    SKIP(kernels::cudnn_library().defect);
  }
  AttentionShape shape{.batch = 1, .query_tokens = 64, .key_tokens = 64, .heads = 1, .kv_heads = 1};
  shape.head_dim = 60;
  const std::string why = refused_by_cudnn(packed(shape, DType::bf16, false),
                                           device_text("NVIDIA H100", 90, 132, 232448), 90);
  CHECK(why.find("multiple of 8") != std::string::npos);
}
