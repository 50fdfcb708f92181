// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The collectives as steps on a window of shared memory. All arithmetic is reduce(), in the order
/// of ranks, so the bits are those of messages.
#pragma once

#include "collectives.hpp"
#include "shared_window.hpp"

#include <memory>
#include <vector>

namespace fourfold::comm {

/// In place.
std::unique_ptr<Machine> shared_all_reduce(SharedWindow& window, std::uint64_t turn,
                                           TensorView data, ReduceOp op);

/// `plan.result` gets this rank's part; plan.gather is not looked at.
std::unique_ptr<Machine> shared_reduce_scatter(SharedWindow& window, std::uint64_t turn,
                                               ChunkedReduction::Plan plan);

/// Every rank's part goes to its place in everyone's `recv`; `own` may be at its place already.
std::unique_ptr<Machine> shared_gather(SharedWindow& window, std::uint64_t turn, const void* own,
                                       void* recv, std::vector<Extent> parts);

/// Nobody goes on before all are here.
std::unique_ptr<Machine> shared_barrier(SharedWindow& window, std::uint64_t turn);

}  // namespace fourfold::comm
