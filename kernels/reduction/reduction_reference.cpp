// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/storage.hpp"

#include <fourfold/kernels/reduction.hpp>

namespace fourfold::kernels::reference {
namespace {

void add(ConstTensorView x, TensorView result, bool accumulate, double (*term)(double)) {
  double total = accumulate ? *result.as<double>() : 0.0;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    total += term(read_element(x, i));
  }
  *result.as<double>() = total;
}

}  // namespace

void sum(ConstTensorView x, TensorView result, bool accumulate, device::StreamRef /*stream*/) {
  add(x, result, accumulate, [](double value) { return value; });
}

void sum_of_squares(ConstTensorView x, TensorView result, bool accumulate,
                    device::StreamRef /*stream*/) {
  add(x, result, accumulate, [](double value) { return value * value; });
}

}  // namespace fourfold::kernels::reference
