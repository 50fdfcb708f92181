// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cross_entropy_backend.hpp"
#include "vectors/storage.hpp"

#include <fourfold/kernels/cross_entropy.hpp>

namespace fourfold::kernels {
namespace {

void expect_part(ConstTensorView logits_TV, std::int64_t first_column, ConstTensorView target_T) {
  FOURFOLD_EXPECT(logits_TV.shape().rank() == 2 && target_T.elements() == logits_TV.dim(0));
  FOURFOLD_EXPECT(first_column >= 0);
}

}  // namespace

void cross_entropy_part(ConstTensorView logits_TV, std::int64_t first_column,
                        ConstTensorView target_T, TensorView statistics_T3,
                        device::StreamRef stream) {
  expect_part(logits_TV, first_column, target_T);
  const std::int64_t tokens = logits_TV.dim(0);
  FOURFOLD_EXPECT(statistics_T3.elements() == tokens * part_statistics);
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    cross_entropy_part_rows<T>(
        {logits_TV.as<T>(), target_T.as<std::int32_t>(), statistics_T3.as<float>(), tokens,
         first_column, row_length(logits_TV.dim(1))},
        stream);
  });
}

void cross_entropy_part_gradient(TensorView logits_TV, std::int64_t first_column,
                                 ConstTensorView target_T, ConstTensorView normaliser_T2,
                                 float gradient_scale, device::StreamRef stream) {
  expect_part(logits_TV, first_column, target_T);
  const std::int64_t tokens = logits_TV.dim(0);
  FOURFOLD_EXPECT(normaliser_T2.elements() == 2 * tokens);
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    cross_entropy_part_gradient_rows<T>(
        {logits_TV.as<T>(), target_T.as<std::int32_t>(), normaliser_T2.as<float>(), tokens,
         first_column, row_length(logits_TV.dim(1)), gradient_scale},
        stream);
  });
}

}  // namespace fourfold::kernels
