// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/enum_name.hpp>
#include <fourfold/comm/algorithm.hpp>

#include <array>
#include <cstdint>

namespace fourfold::exchange {

/// What is measured. send_recv is a ring: each rank sends to the next and receives from the one
/// before.
enum class Operation : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  send_recv
};
constexpr auto names_of(Operation /*any*/) {
  using enum Operation;
  return std::to_array<Named<Operation>>({{all_reduce, "all_reduce"},
                                          {all_gather, "all_gather"},
                                          {reduce_scatter, "reduce_scatter"},
                                          {all_to_all, "all_to_all"},
                                          {send_recv, "send_recv"}});
}
using fourfold::name;
inline constexpr auto all_operations = values_in(named_values<Operation>);

/// Whether there are several ways for it; the others are messages from rank to rank.
bool has_algorithms(Operation operation) noexcept;
/// How it goes on a communicator that uses `algorithm`: not all of them have a way of their own for
/// each operation.
comm::Algorithm way_of(Operation operation, comm::Algorithm algorithm) noexcept;

/// Sizes as nccl-tests counts them: `bytes` are those of the larger of a rank's two buffers.
struct Extent {
  std::int64_t bytes = 0;
  std::int64_t count = 0;  ///< elements of a rank's part; of all_reduce and send_recv: of all
  std::int64_t send_elements = 0;
  std::int64_t recv_elements = 0;  ///< all_reduce works in place: it has only this buffer
};
/// The largest of at most `bytes`, but of one element per part at least.
Extent extent_of(Operation operation, std::int64_t bytes, std::int64_t element_bytes,
                 std::int64_t ranks);

/// What a rank's buffers take together.
std::int64_t buffer_bytes(const Extent& extent, std::int64_t element_bytes) noexcept;

/// Algorithm bandwidth of one call: bytes over time, in GB/s.
double algorithm_gb_s(const Extent& extent, double call_s) noexcept;

/// Bus bandwidth is algorithm bandwidth times this: what each rank's link has to
/// carry whatever the algorithm, as in nccl-tests.
double bus_factor(Operation operation, int ranks) noexcept;

}  // namespace fourfold::exchange
