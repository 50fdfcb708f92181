// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/model/matmul_observer.hpp>

namespace fourfold::model {

void attend(const AttentionMatmul& product, MatmulObserver* observer, device::StreamRef stream) {
  make_observed(observer, product, stream, [&] {
    const auto attention = product.merges ? kernels::attention_merge : kernels::attention;
    attention(product.shape, product.q, product.k, product.v, product.out, product.lse_BNT, stream);
  });
}

void differentiate_attention_part(const AttentionGradient& product, MatmulObserver* observer,
                                  device::StreamRef stream) {
  make_observed(observer, product, stream, [&] {
    kernels::attention_backward_part(product.shape, product.q, product.k, product.v, product.out,
                                     product.dout, product.lse_BNT, product.delta_BNT, product.dq,
                                     product.write_dq, product.dk, product.dv, product.write_dkv,
                                     stream);
  });
}

}  // namespace fourfold::model
