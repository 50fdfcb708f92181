// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/kernels/copy_heads.hpp>

namespace fourfold::kernels {

/// The body of copy_heads.cpp, of hosts or of devices. There is a row.
void copy_head_rows(const HeadRows& rows, ConstHeads from, Heads to, device::StreamRef stream);

}  // namespace fourfold::kernels
