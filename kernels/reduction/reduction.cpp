// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "reduction_backend.hpp"
#include "vectors/storage.hpp"

#include <fourfold/kernels/reduction.hpp>

namespace fourfold::kernels {
namespace {

template <bool squares>
void reduce(const char* label, ConstTensorView x, TensorView result, bool accumulate,
            device::StreamRef stream) {
  FOURFOLD_EXPECT(result.elements() == 1);
  with_storage(x.dtype(), [&]<class T>(T) {
    sum_elements<T, squares>(label, {x.as<T>(), x.elements(), result.as<double>(), accumulate},
                             stream);
  });
}

}  // namespace

void sum(ConstTensorView x, TensorView result, bool accumulate, device::StreamRef stream) {
  reduce<false>("sum", x, result, accumulate, stream);
}

void sum_of_squares(ConstTensorView x, TensorView result, bool accumulate,
                    device::StreamRef stream) {
  reduce<true>("sum_of_squares", x, result, accumulate, stream);
}

}  // namespace fourfold::kernels
