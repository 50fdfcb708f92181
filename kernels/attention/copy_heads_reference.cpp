// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/element.hpp"

#include <fourfold/kernels/reference/copy_heads.hpp>

namespace fourfold::kernels::reference {

void copy_heads(const HeadRows& rows, ConstHeads from, Heads to, device::StreamRef /*stream*/) {
  for (std::int64_t b = 0; b < rows.batch; ++b) {
    for (std::int64_t t = 0; t < rows.tokens; ++t) {
      for (std::int64_t f = 0; f < rows.features; ++f) {
        write_element(
            to.data, to.dtype, b * to.batch_stride + t * to.token_stride + f,
            read_element(from.data, from.dtype, b * from.batch_stride + t * from.token_stride + f));
      }
    }
  }
}

}  // namespace fourfold::kernels::reference
