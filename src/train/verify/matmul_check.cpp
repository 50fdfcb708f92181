// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "matmul_check.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/device.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fourfold::train {
namespace {

using Pass = model::LinearMatmul::Pass;
using kernels::AttentionShape;
using kernels::Write;

template <class Stored>
std::vector<float> widened(const void* data, std::int64_t elements, device::StreamRef stream) {
  std::vector<Stored> copied(elements);
  device::copy(copied.data(), data, elements * sizeof(Stored), stream);
  return {copied.begin(), copied.end()};
}

/// What is there when all work on `stream` is done.
std::vector<float> on_host(const void* data, DType dtype, std::int64_t elements,
                           device::StreamRef stream) {
  switch (dtype) {
    case DType::bf16:
      return widened<BFloat16>(data, elements, stream);
    case DType::f16:
      return widened<Float16>(data, elements, stream);
    default:
      FOURFOLD_EXPECT(dtype == DType::f32);
      return widened<float>(data, elements, stream);
  }
}

std::vector<float> on_host(ConstTensorView tensor, device::StreamRef stream) {
  return tensor ? on_host(tensor.data(), tensor.dtype(), tensor.elements(), stream)
                : std::vector<float>();
}

/// The tensor's matrix, or `columns` of it from `first` on.
HostMatrix matrix_of(const std::vector<float>& values, const ConstTensorView& tensor,
                     std::int64_t first, std::int64_t columns) {
  return {values.data() + first, tensor.dim(0), columns, tensor.dim(1), 1};
}
HostMatrix matrix_of(const std::vector<float>& values, const ConstTensorView& tensor) {
  return matrix_of(values, tensor, 0, tensor.dim(1));
}

template <class Pointer>
HostHeads on_host(const AttentionShape& shape, const kernels::BasicHeads<Pointer>& heads,
                  std::int64_t tokens, std::int64_t count, device::StreamRef stream) {
  if (heads.data == nullptr || shape.batch * tokens * count == 0) {
    return {};
  }
  const std::int64_t elements = (shape.batch - 1) * heads.batch_stride +
                                (tokens - 1) * heads.token_stride + count * shape.head_dim;
  return {on_host(heads.data, heads.dtype, elements, stream), heads.dtype, heads.batch_stride,
          heads.token_stride};
}

template <class Pointer>
HostHeads queries_on_host(const AttentionShape& shape, const kernels::BasicHeads<Pointer>& heads,
                          device::StreamRef stream) {
  return on_host(shape, heads, shape.query_tokens, shape.heads, stream);
}
template <class Pointer>
HostHeads keys_on_host(const AttentionShape& shape, const kernels::BasicHeads<Pointer>& heads,
                       device::StreamRef stream) {
  return on_host(shape, heads, shape.key_tokens, shape.kv_heads, stream);
}

std::vector<float> per_query_on_host(const AttentionShape& shape, const float* values,
                                     device::StreamRef stream) {
  const std::int64_t elements = shape.batch * shape.heads * shape.query_tokens;
  return values == nullptr ? std::vector<float>() : on_host(values, DType::f32, elements, stream);
}

/// Libraries of devices round the softmax of 16-bit operands to their type.
double softmax_roundoff(DType operands) {
  return device::has_own_memory && operands != DType::f32 ? roundoff(operands) : 0;
}

const char* text_of(Pass pass) {
  return pass == Pass::forward          ? "forward"
         : pass == Pass::backward_input ? "input gradient"
                                        : "weight gradient";
}

}  // namespace

void MatmulErrors::add(MatmulErrors of_other_rank) {
  products += of_other_rank.products;
  largest = std::max(largest, of_other_rank.largest);
  if (first_wrong.empty()) {
    first_wrong = std::move(of_other_rank.first_wrong);
  }
}

void MatmulCheck::begin(std::int64_t step) {
  step_ = step;
  errors_ = {};
  calls_.clear();
}

PhiloxKey MatmulCheck::next_key() const {
  const std::uint64_t rank = rank_;
  return philox_key(step_, RandomUse::matmul_check, (rank << 40U) | errors_.products);
}

void MatmulCheck::note(const std::string& product, const Departure& departure) {
  const int call = ++calls_[product];
  ++errors_.products;
  errors_.largest = std::max(errors_.largest, departure.error);
  if (departure.error > tolerance_ && errors_.first_wrong.empty()) {
    errors_.first_wrong = fmt::format(
        "rank {}: {}, call {} of the step: {} differs by {:.3g} times what rounding makes there",
        rank_, product, call, departure.place, departure.error);
  }
}

void MatmulCheck::before(const model::LinearMatmul& product, device::StreamRef stream) {
  if (product.adds) {
    result_before_ = on_host(product.result, stream);
    sums_before_ = on_host(product.sums_O, stream);
  }
}

void MatmulCheck::after(const model::LinearMatmul& product, device::StreamRef stream) {
  const Departure departure = check_linear(product, stream);
  note(fmt::format("the product of {} ({})", product.layer, text_of(product.pass)), departure);
}

Departure MatmulCheck::check_linear(const model::LinearMatmul& product,
                                    device::StreamRef stream) const {
  const std::vector<float> left = on_host(product.left, stream);
  const std::vector<float> right = on_host(product.right, stream);
  const std::vector<float> result = on_host(product.result, stream);
  const std::vector<float> bias = on_host(product.bias_O, stream);
  const HostMatrix w = matrix_of(right, product.right);
  HostMatmul made{.a = matrix_of(left, product.left),
                  .b = w,
                  .c = matrix_of(result, product.result),
                  .stored = product.result.dtype(),
                  .bias = bias,
                  .before = {}};
  if (product.pass == Pass::forward) {
    made.b = w.transposed();
    made.c = matrix_of(result, product.result, product.first, w.rows);
  } else if (product.pass == Pass::backward_input) {
    made.a = matrix_of(left, product.left, product.first, w.rows);
  } else {
    made.a = matrix_of(left, product.left, product.first, made.c.rows).transposed();
  }
  if (product.adds) {
    made.before = matrix_of(result_before_, product.result);
  }
  if (product.pre_NI) {
    const std::vector<float> pre = on_host(product.pre_NI, stream);
    return check_gelu_gradient(made, matrix_of(pre, product.pre_NI), next_key());
  }
  Departure worst = check_sums(made, next_key());
  if (product.activated_NO) {
    const std::vector<float> activated = on_host(product.activated_NO, stream);
    worst.take(check_gelu(made.c, matrix_of(activated, product.activated_NO), made.stored));
  }
  if (product.sums_O) {
    worst.take(
        check_column_sums(made.a.transposed(), sums_before_, on_host(product.sums_O, stream)));
  }
  return worst;
}

void MatmulCheck::before(const model::AttentionMatmul& product, device::StreamRef stream) {
  attention_ = {};
  if (product.merges) {
    attention_.out_before = queries_on_host(product.shape, product.out, stream);
    attention_.lse_before_BNT = per_query_on_host(product.shape, product.lse_BNT, stream);
  }
}

void MatmulCheck::before(const kernels::AttentionGradients& product, device::StreamRef stream) {
  attention_ = {};
  if (product.write_dq == Write::accumulate) {
    attention_.dq_before = queries_on_host(product.shape, product.dq, stream);
  }
  if (product.write_dkv == Write::accumulate) {
    attention_.dk_before = keys_on_host(product.shape, product.dk, stream);
    attention_.dv_before = keys_on_host(product.shape, product.dv, stream);
  }
}

template <class Product>
void MatmulCheck::read_attention(const Product& product, device::StreamRef stream) {
  attention_.shape = product.shape;
  attention_.q = queries_on_host(product.shape, product.q, stream);
  attention_.k = keys_on_host(product.shape, product.k, stream);
  attention_.v = keys_on_host(product.shape, product.v, stream);
  attention_.out = queries_on_host(product.shape, product.out, stream);
  attention_.lse_BNT = per_query_on_host(product.shape, product.lse_BNT, stream);
  attention_.softmax_roundoff = softmax_roundoff(product.q.dtype);
}

void MatmulCheck::after(const model::AttentionMatmul& product, device::StreamRef stream) {
  read_attention(product, stream);
  note(fmt::format("the attention of layer {} (forward)", layer_),
       check_attention(attention_, next_key()));
}

void MatmulCheck::after(const kernels::AttentionGradients& product, device::StreamRef stream) {
  const AttentionShape& shape = product.shape;
  read_attention(product, stream);
  attention_.dout = queries_on_host(shape, product.dout, stream);
  attention_.delta_BNT = per_query_on_host(shape, product.delta_BNT, stream);
  attention_.dq = queries_on_host(shape, product.dq, stream);
  attention_.dk = keys_on_host(shape, product.dk, stream);
  attention_.dv = keys_on_host(shape, product.dv, stream);
  note(fmt::format("the attention of layer {} (gradients)", layer_),
       check_attention_gradient(attention_, next_key()));
}

}  // namespace fourfold::train
