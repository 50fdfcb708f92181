// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cross_entropy_backend.hpp"
#include "vectors/storage.hpp"

#include <fourfold/kernels/cross_entropy.hpp>

namespace fourfold::kernels {
namespace {

template <bool with_gradient>
void classify(ConstTensorView logits_TV, void* gradient_TV, ConstTensorView target_T,
              TensorView loss_T, std::int64_t vocabulary, float gradient_scale,
              device::StreamRef stream) {
  FOURFOLD_EXPECT(logits_TV.shape().rank() == 2);
  FOURFOLD_EXPECT(vocabulary > 0 && vocabulary <= logits_TV.dim(1));
  FOURFOLD_EXPECT(target_T.elements() == logits_TV.dim(0));
  FOURFOLD_EXPECT(loss_T.elements() == logits_TV.dim(0));
  with_storage(logits_TV.dtype(), [&]<class T>(T) {
    cross_entropy_rows<T, with_gradient>(
        {logits_TV.as<T>(), static_cast<T*>(gradient_TV), target_T.as<std::int32_t>(),
         loss_T.as<float>(), logits_TV.dim(0), row_length(logits_TV.dim(1)), row_length(vocabulary),
         gradient_scale},
        stream);
  });
}

}  // namespace

void cross_entropy_forward_backward(TensorView logits_TV, ConstTensorView target_T,
                                    TensorView loss_T, std::int64_t vocabulary,
                                    float gradient_scale, device::StreamRef stream) {
  classify<true>(logits_TV, logits_TV.data(), target_T, loss_T, vocabulary, gradient_scale, stream);
}

void cross_entropy(ConstTensorView logits_TV, ConstTensorView target_T, TensorView loss_T,
                   std::int64_t vocabulary, device::StreamRef stream) {
  classify<false>(logits_TV, nullptr, target_T, loss_T, vocabulary, 0.0F, stream);
}

}  // namespace fourfold::kernels
