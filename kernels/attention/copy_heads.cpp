// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "copy_heads_backend.hpp"

namespace fourfold::kernels {

void copy_heads(const HeadRows& rows, ConstHeads from, Heads to, device::StreamRef stream) {
  if (rows.batch * rows.tokens > 0) {
    copy_head_rows(rows, from, to, stream);
  }
}

}  // namespace fourfold::kernels
