// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/comm/flight_recorder.hpp>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace fourfold::comm;
using Catch::Approx;

// doc/PERFORMANCE.md of nccl-tests.
TEST_CASE("bus bandwidth is what nccl-tests say it is", "[bandwidth]") {
  CHECK(bus_factor(Operation::all_reduce, 8) == Approx(14.0 / 8));
  CHECK(bus_factor(Operation::all_gather, 8) == Approx(7.0 / 8));
  CHECK(bus_factor(Operation::reduce_scatter, 8) == Approx(7.0 / 8));
  CHECK(bus_factor(Operation::all_to_all, 8) == Approx(7.0 / 8));
  CHECK(bus_factor(Operation::broadcast, 8) == 1);
  CHECK(bus_factor(Operation::send, 8) == 1);
  CHECK(bus_factor(Operation::recv, 8) == 1);
  CHECK(bus_factor(Operation::all_reduce, 1) == 0);  // nothing has to go anywhere
  CHECK(bus_factor(Operation::all_gather, 1) == 0);
}
