// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// What the emulated device refuses to record, beyond what CUDA does.
#include <fourfold/base/error.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/graph.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace fourfold;
using namespace fourfold::device;

TEST_CASE("an emulated device records no pageable memory and no default stream", "[graph]") {
  const Stream stream;
  const Buffer memory(sizeof(int));
  int pageable = 3;
  CHECK_THROWS_WITH(
      Graph::capture(stream, [&] { copy(memory.data(), &pageable, sizeof(int), stream); }),
      Catch::Matchers::ContainsSubstring("cudaErrorStreamCaptureUnsupported"));
  CHECK_THROWS_WITH(
      Graph::capture(stream, [&] { copy(&pageable, memory.data(), sizeof(int), stream); }),
      Catch::Matchers::ContainsSubstring("cudaErrorStreamCaptureUnsupported"));
  CHECK_THROWS_WITH(Graph::capture(stream, [&] { zero(memory.data(), sizeof(int), {}); }),
                    Catch::Matchers::ContainsSubstring("cudaErrorStreamCaptureImplicit"));
  CHECK(pageable == 3);
}
