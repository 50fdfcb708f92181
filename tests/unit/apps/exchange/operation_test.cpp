// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/exchange/operation.hpp>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

namespace fourfold::exchange {
namespace {

using Catch::Approx;

TEST_CASE("sizes are those of nccl-tests", "[operation]") {
  const Extent reduced = extent_of(Operation::all_reduce, 4096, 4, 4);
  CHECK(reduced.count == 1024);
  CHECK(reduced.send_elements == 0);
  CHECK(reduced.recv_elements == 1024);
  const Extent gathered = extent_of(Operation::all_gather, 4100, 4, 4);
  CHECK(gathered.count == 256);
  CHECK(gathered.send_elements == 256);
  CHECK(gathered.recv_elements == 1024);
  CHECK(gathered.bytes == 4096);
  const Extent scattered = extent_of(Operation::reduce_scatter, 4096, 4, 4);
  CHECK(scattered.send_elements == 1024);
  CHECK(scattered.recv_elements == 256);
  CHECK(buffer_bytes(scattered, 4) == 4 * 1280);
  // At least one element for each.
  CHECK(extent_of(Operation::all_to_all, 8, 4, 4).bytes == 16);
  CHECK(extent_of(Operation::send_recv, 1, 8, 4).bytes == 8);
}

TEST_CASE("bus bandwidth is what a link carries", "[operation]") {
  CHECK(bus_factor(Operation::all_reduce, 4) == Approx(1.5));
  CHECK(bus_factor(Operation::all_gather, 4) == Approx(0.75));
  CHECK(bus_factor(Operation::reduce_scatter, 4) == Approx(0.75));
  CHECK(bus_factor(Operation::all_to_all, 4) == Approx(0.75));
  CHECK(bus_factor(Operation::send_recv, 4) == 1);
  CHECK(way_of(Operation::all_reduce, comm::Algorithm::tree) == comm::Algorithm::tree);
  CHECK(way_of(Operation::all_gather, comm::Algorithm::ring) == comm::Algorithm::ring);
  CHECK(way_of(Operation::reduce_scatter, comm::Algorithm::ring) == comm::Algorithm::direct);
  CHECK(way_of(Operation::reduce_scatter, comm::Algorithm::shared) == comm::Algorithm::shared);
  CHECK(way_of(Operation::send_recv, comm::Algorithm::shared) == comm::Algorithm::direct);
  CHECK(value_named<Operation>("all_to_all") == Operation::all_to_all);
  CHECK_FALSE(value_named<Operation>("allreduce").has_value());
}

}  // namespace
}  // namespace fourfold::exchange
