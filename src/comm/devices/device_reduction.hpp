// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/stream.hpp>

#include <cstdint>
#include <span>

namespace fourfold::comm {

/// Ranks that may be threads on one device; `fourfold verify` starts no more.
inline constexpr int most_device_ranks = 256;

/// reduce() (reduction.hpp) of device memory in the order of ranks, with the same bits, enqueued on
/// `stream`. @pre inputs <= most_device_ranks
void reduce_on_device(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* output,
                      std::int64_t elements, device::StreamRef stream);

}  // namespace fourfold::comm
