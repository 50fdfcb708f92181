// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/comm/flight_recorder.hpp>
#include <fourfold/exchange/operation.hpp>

#include <algorithm>

namespace fourfold::exchange {
namespace {

/// Whether a buffer has a part for each rank.
bool has_parts(Operation operation) {
  return operation != Operation::all_reduce && operation != Operation::send_recv;
}

}  // namespace

bool has_algorithms(Operation operation) noexcept {
  return operation != Operation::all_to_all && operation != Operation::send_recv;
}

comm::Algorithm way_of(Operation operation, comm::Algorithm algorithm) noexcept {
  const bool own_way = algorithm == comm::Algorithm::shared ? has_algorithms(operation)
                       : algorithm == comm::Algorithm::ring ? operation == Operation::all_reduce ||
                                                                  operation == Operation::all_gather
                                                            : operation == Operation::all_reduce;
  return own_way ? algorithm : comm::Algorithm::direct;
}

Extent extent_of(Operation operation, std::int64_t bytes, std::int64_t element_bytes,
                 std::int64_t ranks) {
  const std::int64_t parts = has_parts(operation) ? ranks : 1;
  Extent extent;
  extent.count = std::max<std::int64_t>(1, bytes / (element_bytes * parts));
  const std::int64_t all = extent.count * parts;
  extent.bytes = all * element_bytes;
  extent.send_elements = operation == Operation::all_reduce   ? 0
                         : operation == Operation::all_gather ? extent.count
                                                              : all;
  extent.recv_elements = operation == Operation::reduce_scatter ? extent.count : all;
  return extent;
}

std::int64_t buffer_bytes(const Extent& extent, std::int64_t element_bytes) noexcept {
  return (extent.send_elements + extent.recv_elements) * element_bytes;
}

double algorithm_gb_s(const Extent& extent, double call_s) noexcept {
  return static_cast<double>(extent.bytes) / call_s / 1e9;
}

double bus_factor(Operation operation, int ranks) noexcept {
  switch (operation) {
    case Operation::all_reduce:
      return comm::bus_factor(comm::Operation::all_reduce, ranks);
    case Operation::all_gather:
      return comm::bus_factor(comm::Operation::all_gather, ranks);
    case Operation::reduce_scatter:
      return comm::bus_factor(comm::Operation::reduce_scatter, ranks);
    case Operation::all_to_all:
      return comm::bus_factor(comm::Operation::all_to_all, ranks);
    case Operation::send_recv:
      break;
  }
  return comm::bus_factor(comm::Operation::send, ranks);
}

}  // namespace fourfold::exchange
