// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What our own kernel of the transport makes of a device that fails.
#include "devices/device_reduction.hpp"
#include "failing_device.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/device/buffer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <array>

namespace fourfold::comm {

TEST_CASE("a reduction that a broken device does not launch is a fault of the node", "[device]") {
  const device::Stream stream;
  const device::Buffer memory(21 * sizeof(float));
  const std::array<const void*, 2> inputs{memory.data(), memory.data()};
  const auto reduce = [&] {
    reduce_on_device(DType::f32, ReduceOp::sum, inputs, memory.data(), 21, stream);
  };
  {
    const harness::FailingDevice failing("cudaLaunchKernel:1:214");
    try {
      reduce();
      FAIL("nothing was thrown");
    } catch (const SystemError& error) {
      CHECK(error.code() == ExitCode::node_fault);
      CHECK_THAT(error.what(),
                 Catch::Matchers::StartsWith(
                     "GPU 0 (Emulated GPU): cudaLaunchKernel of 84 bytes failed (cudaErrorECC"));
    }
  }
  CHECK_NOTHROW(reduce());  // it was told once
  device::Event event;
  event.record(stream);
  while (!event.has_happened()) {
    CHECK_NOTHROW(reduce());  // "not ready" is none of its failures
  }
}

}  // namespace fourfold::comm
