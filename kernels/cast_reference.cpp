// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "element.hpp"

#include <fourfold/kernels/reference/cast.hpp>

namespace fourfold::kernels::reference {

void cast(ConstTensorView source, TensorView target, device::StreamRef /*stream*/) {
  for (std::int64_t i = 0; i < source.elements(); ++i) {
    write_element(target, i, read_element(source, i));
  }
}

void scale(TensorView x, float factor, device::StreamRef /*stream*/) {
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    write_element(x, i, read_element(x, i) * static_cast<double>(factor));
  }
}

void sum(ConstTensorView x, TensorView result, bool accumulate, device::StreamRef /*stream*/) {
  double total = accumulate ? *result.as<double>() : 0.0;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    total += static_cast<double>(x.as<float>()[i]);
  }
  *result.as<double>() = total;
}

}  // namespace fourfold::kernels::reference
