// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The plain, serial, obviously right body of copy_heads.hpp. Tests compare the fast body with it;
/// not for use in a run.
#pragma once

#include <fourfold/kernels/copy_heads.hpp>

namespace fourfold::kernels::reference {

void copy_heads(const HeadRows& rows, ConstHeads from, Heads to, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
