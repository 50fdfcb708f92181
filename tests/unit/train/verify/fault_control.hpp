// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the bodies that the linker puts in front of products have in common: MatmulFault says which
/// of them goes wrong.
#pragma once

#include "matmul_fault.hpp"

#include <fourfold/base/dtype.hpp>

#include <cstdint>

namespace fourfold::test {

/// Counts this call of `product`. @return whether it is the one that goes wrong
bool is_spoiled(Product product);
/// The column of it that does, to be taken modulo the number of columns.
std::int64_t spoiled_column();

/// For MatmulFault::happened().
void note_change();

float value_at(const void* data, DType dtype, std::int64_t i);
void set_at(void* data, DType dtype, std::int64_t i, float value);
/// Adds to one number, and notes it if that changes it.
void add_to(void* data, DType dtype, std::int64_t i, float more);

}  // namespace fourfold::test
