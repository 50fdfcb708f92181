// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/comm/communicator.hpp>

#include <cstdint>
#include <span>

namespace fourfold::comm {

/// output[i] = reduction over r of inputs[r][i], in the order of the inputs, which is the order of
/// ranks: ((x0 + x1) + x2) + ... whatever the size and the transport.
///
/// bf16 and f16 are reduced in float and rounded once; other types in their own. With max and min a
/// NaN of any rank wins. `output` may be one of the inputs.
/// @pre avg only for floating-point types; inputs not empty
void reduce(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* output,
            std::int64_t elements);

/// "sum", "max", ...
std::string_view name(ReduceOp op) noexcept;

}  // namespace fourfold::comm
