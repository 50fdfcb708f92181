// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/storage.hpp"

#include <fourfold/kernels/cast.hpp>

namespace fourfold::kernels::reference {

void cast(ConstTensorView source, TensorView target, device::StreamRef /*stream*/) {
  for (std::int64_t i = 0; i < source.elements(); ++i) {
    write_element(target, i, read_element(source, i));
  }
}

void add_scaled(ConstTensorView x, float factor, ConstTensorView y, TensorView out,
                device::StreamRef /*stream*/) {
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    write_element(out, i, read_element(x, i) + factor * read_element(y, i));
  }
}

}  // namespace fourfold::kernels::reference
