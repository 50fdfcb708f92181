// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/comm/communicator.hpp>

#include <cstdint>
#include <span>

namespace fourfold::comm {

/// In which order values of ranks 0, 1, ... are combined.
enum class Order : std::uint8_t {
  ranks,  ///< ((x0 + x1) + x2) + x3
  pairs,  ///< (x0 + x1) + (x2 + x3): a binomial tree, of which missing ranks are left out
};

/// output[i] = reduction over r of inputs[r][i], inputs being those of ranks 0, 1, ...; whatever
/// the size and the transport.
///
/// bf16 and f16 are reduced in float and rounded once; other types in their own. With max and min a
/// NaN of any rank wins. `output` may be one of the inputs.
/// @pre avg only for floating-point types; inputs not empty
void reduce(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* output,
            std::int64_t elements, Order order = Order::ranks);

/// Reductions that are carried on from rank to rank: a partial one has elements of this type.
DType accumulator_of(DType dtype) noexcept;
/// partial[i] = input[i]
void begin_partial(DType dtype, const void* input, void* partial, std::int64_t elements);
/// joined[i] = left[i] op right[i], all of them partial; `joined` may be one of the others.
void join_partials(DType dtype, ReduceOp op, const void* left, const void* right, void* joined,
                   std::int64_t elements);
/// output[i] = partial[i], rounded; avg: divided by `ranks` before.
void end_partial(DType dtype, ReduceOp op, int ranks, const void* partial, void* output,
                 std::int64_t elements);

/// "sum", "max", ...
std::string_view name(ReduceOp op) noexcept;

}  // namespace fourfold::comm
