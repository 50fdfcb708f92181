// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Somebody who is shown every matrix product of a model where it is made, with all that went into
/// it: to check it (train/matmul_check.hpp). Nobody is there in a training run.
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/attention.hpp>

#include <cstdint>
#include <string_view>

namespace fourfold::model {

/// One call of kernels/matmul.hpp. Legend: N rows, I input features, O output features of this
/// call, Y output features of all tiles.
struct LinearMatmul {
  /// forward: result_NY = left_NI right_OI^T + bias; backward_input: result_NI = left_NY right_OI;
  /// backward_weight: result_OI = left_NY^T right_NI, and sums_O = column sums of left. Of Y the
  /// columns from `first` on.
  enum class Pass : std::uint8_t { forward, backward_input, backward_weight };
  Pass pass = Pass::forward;
  std::string_view layer = {};  ///< "layers.2.mlp.up_proj"; of those made at once all, with slashes
  ConstTensorView left = {};
  ConstTensorView right = {};
  TensorView result = {};
  std::int64_t first = 0;
  bool adds = false;  ///< to what result and sums hold
  ConstTensorView bias_O = {};
  /// forward: gelu(result) is made too, here; absent: it is not
  TensorView activated_NO = {};
  /// backward_input: the result is the product times gelu'(pre); absent: it is the product
  ConstTensorView pre_NI = {};
  TensorView sums_O = {};
};

/// One call of kernels::attention or attention_merge.
struct AttentionMatmul {
  kernels::AttentionShape shape = {};
  kernels::ConstHeads q = {};
  kernels::ConstHeads k = {};
  kernels::ConstHeads v = {};
  kernels::Heads out = {};
  float* lse_BNT = nullptr;
  bool merges = false;  ///< with what out and lse hold
};

/// Is shown each product, those of attention's gradients by the operands of the kernel, twice:
/// before it is enqueued on `stream`, and after. What it was made of and what it has made stays as
/// it is until the second call returns. Observers may block the host: a run that is observed
/// records no CUDA graphs. One thread per object.
class MatmulObserver {
 public:
  virtual ~MatmulObserver() = default;
  MatmulObserver() = default;
  MatmulObserver(const MatmulObserver&) = delete;
  MatmulObserver& operator=(const MatmulObserver&) = delete;

  /// The attention that comes next is that of this layer.
  virtual void enter_attention(int layer) = 0;

  virtual void before(const LinearMatmul& product, device::StreamRef stream) = 0;
  virtual void after(const LinearMatmul& product, device::StreamRef stream) = 0;
  virtual void before(const AttentionMatmul& product, device::StreamRef stream) = 0;
  virtual void after(const AttentionMatmul& product, device::StreamRef stream) = 0;
  virtual void before(const kernels::AttentionGradients& product, device::StreamRef stream) = 0;
  virtual void after(const kernels::AttentionGradients& product, device::StreamRef stream) = 0;
};

/// Calls make(), and shows the product to `observer`, if there is one.
template <class Product, class Make>
void make_observed(MatmulObserver* observer, const Product& product, device::StreamRef stream,
                   const Make& make) {
  if (observer == nullptr) {
    make();
    return;
  }
  observer->before(product, stream);
  make();
  observer->after(product, stream);
}

/// The kernels of these names, shown to `observer`.
void attend(const AttentionMatmul& product, MatmulObserver* observer, device::StreamRef stream);
void differentiate_attention_part(const kernels::AttentionGradients& product,
                                  MatmulObserver* observer, device::StreamRef stream);

}  // namespace fourfold::model
