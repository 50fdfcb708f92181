// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "modules.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/rotary.hpp>

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <type_traits>

namespace fourfold::model {
namespace {

std::string prefix(int layer, const char* part) {
  return fmt::format("layers.{}.{}", layer, part);
}

Linear first_mlp_product(const Parameters& parameters, bool gated, int layer,
                         ParallelHooks& hooks) {
  if (gated) {
    return {parameters, {prefix(layer, "mlp.gate_proj"), prefix(layer, "mlp.up_proj")}, hooks};
  }
  return {parameters, {prefix(layer, "mlp.up_proj")}, hooks};
}

}  // namespace

TensorView partial_of(TensorView target_RD, const MicroBatchContext& pass, const Scratch& scratch) {
  return pass.residual.count == pass.rows ? target_RD
                                          : scratch.partial(pass.rows, target_RD.dim(1));
}

ConstTensorView gather_then_prefetch(ParallelHooks& hooks, ConstTensorView x_RD,
                                     ConstTensorView then_RD, std::int64_t rows,
                                     device::StreamRef stream) {
  const ConstTensorView all_TD = hooks.gather_rows(x_RD, rows, stream);
  if (then_RD) {
    hooks.prefetch_rows(then_RD, rows, stream);
  }
  return all_TD;
}

Block::Block(const StageShape& shape, int layer, const Parameters& parameters, ParallelHooks& hooks)
    : traits_(shape.config.layer(layer)),
      recomputes_(shape.options.recompute.kind == Recompute::Kind::selective),
      layer_(layer),
      sizes_(shape.sizes),
      attn_norm_(traits_.norm, parameters, prefix(layer, "attn_norm")),
      qkv_(parameters,
           {prefix(layer, "attn.q_proj"), prefix(layer, "attn.k_proj"),
            prefix(layer, "attn.v_proj")},
           hooks),
      out_(parameters, {prefix(layer, "attn.o_proj")}, hooks),
      mlp_norm_(traits_.norm, parameters, prefix(layer, "mlp_norm")),
      up_(first_mlp_product(parameters, traits_.feed_forward.gated, layer, hooks)),
      down_(parameters, {prefix(layer, "mlp.down_proj")}, hooks),
      hooks_(hooks) {
  if (traits_.attention.qk_norm) {
    const NormTraits rms{NormTraits::Kind::rms, traits_.norm.epsilon};
    q_norm_.emplace(rms, parameters, prefix(layer, "attn.q_norm"));
    k_norm_.emplace(rms, parameters, prefix(layer, "attn.k_norm"));
  }
  FOURFOLD_EXPECT(qkv_.out_features() == shape.qkv_features());
  FOURFOLD_EXPECT(up_.out_features() == shape.up_features());
}

template <class Pointer>
Block::Fused<Pointer> Block::split(Pointer qkv, DType dtype, const MicroBatchContext& pass) const {
  using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const std::byte,
                                  std::byte>;
  const std::int64_t row = qkv_.out_features();
  const std::int64_t k_first = sizes_.heads * traits_.attention.head_dim;
  const std::int64_t v_first = k_first + sizes_.kv_heads * traits_.attention.head_dim;
  const auto heads_from = [&](std::int64_t feature) {
    Pointer data = static_cast<Byte*>(qkv) + feature * size_in_bytes(dtype);
    return kernels::BasicHeads<Pointer>{data, dtype, pass.tokens * row, row};
  };
  return {heads_from(0), heads_from(k_first), heads_from(v_first)};
}

std::array<Block::NormedHeads, 2> Block::normed_heads(const Fused<void*>& product) const {
  return {NormedHeads{*q_norm_, product.q, sizes_.heads, 0},
          NormedHeads{*k_norm_, product.k, sizes_.kv_heads, sizes_.heads}};
}

TensorView Block::rows_of(const NormedHeads& heads, TensorView memory, std::int64_t first_head,
                          const MicroBatchContext& pass) const {
  const std::int64_t first = pass.rows * first_head * traits_.attention.head_dim;
  const std::int64_t count = pass.rows * heads.heads;
  return memory.rows(first, count * traits_.attention.head_dim)
      .reshape(Shape{count, traits_.attention.head_dim});
}

kernels::Heads Block::dense(const NormedHeads& heads, const TensorView& rows,
                            const MicroBatchContext& pass) const {
  const std::int64_t row = heads.heads * traits_.attention.head_dim;
  return {rows.data(), rows.dtype(), pass.tokens * row, row};
}

kernels::HeadRows Block::sizes_of(const NormedHeads& heads, const MicroBatchContext& pass) const {
  return {pass.sequences, pass.tokens, heads.heads * traits_.attention.head_dim};
}

TensorView Block::rstd_of(const NormedHeads& heads, const Scratch& scratch,
                          const MicroBatchContext& pass) const {
  return scratch.rstd.rows(pass.rows * heads.first_head, pass.rows * heads.heads);
}

Block::Fused<const void*> Block::attention_inputs(const MicroBatchContext& pass,
                                                  const BlockActivations& kept,
                                                  const Scratch& scratch, ConstTensorView rotary_PH,
                                                  device::StreamRef stream) const {
  const auto read = [](const kernels::Heads& heads) {
    return kernels::ConstHeads{heads.data, heads.dtype, heads.batch_stride, heads.token_stride};
  };
  Fused<void*> inputs = split(kept.qkv_NQ.data(), kept.qkv_NQ.dtype(), pass);
  if (q_norm_) {
    const std::array<NormedHeads, 2> both = normed_heads(inputs);
    for (const NormedHeads& one : both) {
      const TensorView plain = rows_of(one, scratch.plain, 0, pass);
      kernels::copy_heads(sizes_of(one, pass), read(one.product), dense(one, plain, pass), stream);
      const TensorView normed = rows_of(one, scratch.normed, one.first_head, pass);
      one.norm.forward(plain, normed, {.mean_R = {}, .rstd_R = rstd_of(one, scratch, pass)},
                       stream);
      (one.first_head == 0 ? inputs.q : inputs.k) = dense(one, normed, pass);
    }
    rotate(inputs, pass, rotary_PH, false, stream);
  }
  return {read(inputs.q), read(inputs.k), read(inputs.v)};
}

void Block::backward_inputs(const MicroBatchContext& pass, const BlockActivations& kept,
                            const Scratch& scratch, ConstTensorView rotary_PH,
                            const Fused<void*>& gradients, device::StreamRef stream) const {
  rotate(gradients, pass, rotary_PH, true, stream);
  if (!q_norm_) {
    return;
  }
  const auto products = normed_heads(split(kept.qkv_NQ.data(), kept.qkv_NQ.dtype(), pass));
  const auto both = normed_heads(gradients);
  for (std::size_t i = 0; i < both.size(); ++i) {
    const NormedHeads& one = both[i];
    const kernels::HeadRows sizes = sizes_of(one, pass);
    const TensorView plain = rows_of(one, scratch.plain, 0, pass);
    const TensorView dnormed = rows_of(one, scratch.normed, one.first_head, pass);
    const TensorView dplain = scratch.partial(plain.dim(0), traits_.attention.head_dim);
    const auto copy = [&](const kernels::Heads& from, const kernels::Heads& to) {
      kernels::copy_heads(sizes, {from.data, from.dtype, from.batch_stride, from.token_stride}, to,
                          stream);
    };
    copy(products[i].product, dense(one, plain, pass));
    copy(one.product, dense(one, dnormed, pass));
    device::zero(dplain.data(), dplain.bytes(), stream);
    one.norm.backward(dnormed, plain, {.mean_R = {}, .rstd_R = rstd_of(one, scratch, pass)}, dplain,
                      stream);
    copy(dense(one, dplain, pass), one.product);
  }
}

kernels::ConstHeads Block::attended(ConstTensorView rows_NA, const MicroBatchContext& pass) const {
  const std::int64_t row = sizes_.heads * traits_.attention.head_dim;
  return {rows_NA.data(), rows_NA.dtype(), pass.tokens * row, row};
}

kernels::AttentionShape Block::attention_shape(const MicroBatchContext& pass) const {
  kernels::AttentionShape shape;
  shape.batch = pass.sequences;
  shape.query_tokens = pass.tokens;
  shape.key_tokens = pass.tokens;
  shape.heads = sizes_.heads;
  shape.kv_heads = sizes_.kv_heads;
  shape.head_dim = traits_.attention.head_dim;
  shape.deterministic = pass.deterministic_attention;
  shape.scale = static_cast<float>(1.0 / std::sqrt(traits_.attention.head_dim));
  return shape;
}

void Block::rotate(const Fused<void*>& heads, const MicroBatchContext& pass,
                   ConstTensorView rotary_PH, bool inverse, device::StreamRef stream) const {
  if (!traits_.positions.are_rotary()) {
    return;
  }
  const ConstTensorView position_T = pass.position_N.rows(0, pass.tokens);
  kernels::rotary(heads.q, pass.sequences, pass.tokens, sizes_.heads, traits_.attention.head_dim,
                  rotary_PH, position_T, inverse, stream);
  kernels::rotary(heads.k, pass.sequences, pass.tokens, sizes_.kv_heads, traits_.attention.head_dim,
                  rotary_PH, position_T, inverse, stream);
}

void Block::branch(const Linear& product, ConstTensorView x, const MicroBatchContext& pass,
                   const Scratch& scratch, TensorView y_RD, device::StreamRef stream) const {
  const TensorView partial = partial_of(y_RD, pass, scratch);
  product.forward(x, partial, hooks_.adds_once(), stream);
  hooks_.reduce_rows(partial, y_RD, stream);
}

/// The other sum of a block goes to the next one's norm, whose weights may not be here yet.
void Block::add_attention(const MicroBatchContext& pass, const BlockActivations& kept,
                          const Scratch& scratch, device::StreamRef stream) const {
  branch(out_, kept.attended_NA, pass, scratch, kept.middle_RD, stream);
  if (pass.drops()) {
    pass.drop_and_add(attention_dropout_site(layer_), kept.middle_RD, kept.input_RD, kept.middle_RD,
                      stream);
    mlp_norm_.forward(kept.middle_RD, kept.mlp_norm_RD, kept.mlp_statistics, stream);
  } else {
    mlp_norm_.forward_of_sum(kept.middle_RD, kept.input_RD, kept.middle_RD, kept.mlp_norm_RD,
                             kept.mlp_statistics, stream);
  }
}

void Block::say_where() const {
  if (MatmulObserver* const observer = hooks_.matmul_observer()) {
    observer->enter_attention(layer_);
  }
}

void Block::attend(const MicroBatchContext& pass, const BlockActivations& kept,
                   const Scratch& scratch, ConstTensorView rotary_PH,
                   device::StreamRef stream) const {
  const auto inputs = attention_inputs(pass, kept, scratch, rotary_PH, stream);
  say_where();
  const std::int64_t row = kept.attended_NA.dim(1);
  hooks_.attention(attention_shape(pass), inputs.q, inputs.k, inputs.v,
                   {kept.attended_NA.data(), kept.attended_NA.dtype(), pass.tokens * row, row},
                   kept.lse_NM.as<float>(), stream);
}

void Block::activate(const BlockActivations& kept, device::StreamRef stream) const {
  const auto activation = traits_.feed_forward.activation;
  if (traits_.feed_forward.gated) {
    kernels::activate_gated(activation, kept.up_NU, kept.activated_NF, stream);
  } else {
    kernels::activate(activation, kept.up_NU, kept.activated_NF, stream);
  }
}

bool Block::has_fused_activation() const {
  return !traits_.feed_forward.gated &&
         traits_.feed_forward.activation == kernels::Activation::gelu_tanh;
}

/// An activation that the product makes may differ in its last place from one that is made by
/// itself, as recompute() does it.
void Block::up_and_activate(ConstTensorView x_ND, const BlockActivations& kept,
                            device::StreamRef stream) const {
  if (has_fused_activation() && !recomputes_) {
    up_.forward_gelu(x_ND, kept.up_NU, kept.activated_NF, stream);
  } else {
    up_.forward(x_ND, kept.up_NU, true, stream);
    activate(kept, stream);
  }
}

void Block::forward(const MicroBatchContext& pass, const BlockActivations& kept,
                    const Scratch& scratch, ConstTensorView rotary_PH, TensorView output_RD,
                    device::StreamRef stream) const {
  attn_norm_.forward(kept.input_RD, kept.attn_norm_RD, kept.attn_statistics, stream);
  qkv_.forward(hooks_.gather_rows(kept.attn_norm_RD, pass.rows, stream), kept.qkv_NQ, true, stream);
  if (!q_norm_) {
    rotate(split(kept.qkv_NQ.data(), kept.qkv_NQ.dtype(), pass), pass, rotary_PH, false, stream);
  }
  attend(pass, kept, scratch, rotary_PH, stream);
  add_attention(pass, kept, scratch, stream);

  up_and_activate(hooks_.gather_rows(kept.mlp_norm_RD, pass.rows, stream), kept, stream);
  if (output_RD) {
    branch(down_, kept.activated_NF, pass, scratch, output_RD, stream);
    pass.drop_and_add(mlp_dropout_site(layer_), output_RD, kept.middle_RD, output_RD, stream);
  }
}

void Block::recompute(const MicroBatchContext& pass, const BlockActivations& kept,
                      const Scratch& scratch, ConstTensorView rotary_PH,
                      device::StreamRef stream) const {
  attn_norm_.forward(kept.input_RD, kept.attn_norm_RD, kept.attn_statistics, stream);
  attend(pass, kept, scratch, rotary_PH, stream);
  mlp_norm_.forward(kept.middle_RD, kept.mlp_norm_RD, kept.mlp_statistics, stream);
  activate(kept, stream);
}

TensorView Block::branch_gradient(TensorView dresidual_RD, TensorView kept,
                                  std::uint64_t dropout_site, const MicroBatchContext& pass,
                                  device::StreamRef stream) const {
  if (pass.drops()) {
    pass.drop_backward(dropout_site, dresidual_RD, kept, stream);
    return kept;
  }
  if (kept) {
    device::copy(kept.data(), dresidual_RD.data(), kept.bytes(), stream);
    return kept;
  }
  return dresidual_RD;
}

TensorView Block::norm_gradient(const Linear& product, ConstTensorView dy,
                                const MicroBatchContext& pass, const Scratch& scratch,
                                device::StreamRef stream) const {
  const TensorView summed = scratch.summed_RD.rows(0, pass.residual.count);
  const TensorView partial = partial_of(summed, pass, scratch);
  product.backward_input(dy, partial, scratch.sums, stream);
  hooks_.reduce_rows(partial, summed, stream);
  return summed;
}

TensorView Block::up_gradient(const BlockActivations& kept,
                              const ProductGradients& gradients) const {
  return traits_.feed_forward.gated ? kept.up_NU : gradients.activated_NF;
}

void Block::backward_down(ConstTensorView ddown_ND, const BlockActivations& kept,
                          const ProductGradients& gradients, const Scratch& scratch,
                          device::StreamRef stream) const {
  const TensorView dactivated = gradients.activated_NF;
  if (has_fused_activation()) {
    down_.backward_input_gelu(ddown_ND, kept.up_NU, dactivated, scratch.sums, stream);
    return;
  }
  down_.backward_input(ddown_ND, dactivated, scratch.sums, stream);
  if (!traits_.feed_forward.gated) {
    kernels::activate_backward(traits_.feed_forward.activation, dactivated, kept.up_NU, dactivated,
                               stream);
  }
}

void Block::backward(const MicroBatchContext& pass, const BlockActivations& kept,
                     const ProductGradients& gradients, const Scratch& scratch,
                     ConstTensorView rotary_PH, TensorView dresidual_RD, WeightGradients when,
                     device::StreamRef stream) const {
  backward_mlp(pass, kept, gradients, scratch, dresidual_RD, when, stream);
  backward_attention(pass, kept, gradients, scratch, rotary_PH, dresidual_RD, when, stream);
}

void Block::backward_mlp(const MicroBatchContext& pass, const BlockActivations& kept,
                         const ProductGradients& gradients, const Scratch& scratch,
                         TensorView dresidual_RD, WeightGradients when,
                         device::StreamRef stream) const {
  const TensorView ddown_RD =
      branch_gradient(dresidual_RD, gradients.down_RD, mlp_dropout_site(layer_), pass, stream);
  const ConstTensorView ddown = hooks_.gather_rows(ddown_RD, pass.rows, stream);
  backward_down(ddown, kept, gradients, scratch, stream);
  if (when == WeightGradients::now) {
    down_.backward_weight(kept.activated_NF, ddown, stream);
  }
  const TensorView dup = up_gradient(kept, gradients);
  if (traits_.feed_forward.gated) {
    kernels::activate_gated_backward(traits_.feed_forward.activation, gradients.activated_NF,
                                     kept.up_NU, dup, stream);
  }
  if (when == WeightGradients::now) {
    hooks_.prefetch_rows(kept.mlp_norm_RD, pass.rows, stream);
  }
  const TensorView dnorm_RD = norm_gradient(up_, dup, pass, scratch, stream);
  if (when == WeightGradients::now) {
    up_.backward_weight(hooks_.gather_rows(kept.mlp_norm_RD, pass.rows, stream), dup, stream);
  }
  mlp_norm_.backward(dnorm_RD, kept.middle_RD, kept.mlp_statistics, dresidual_RD, stream);
}

void Block::backward_attention(const MicroBatchContext& pass, const BlockActivations& kept,
                               const ProductGradients& gradients, const Scratch& scratch,
                               ConstTensorView rotary_PH, TensorView dresidual_RD,
                               WeightGradients when, device::StreamRef stream) const {
  const TensorView dout_RD =
      branch_gradient(dresidual_RD, gradients.out_RD, attention_dropout_site(layer_), pass, stream);
  const ConstTensorView dout = hooks_.gather_rows(dout_RD, pass.rows, stream);
  const TensorView dattended = scratch.partial(pass.rows, kept.attended_NA.dim(1));
  out_.backward_input(dout, dattended, scratch.sums, stream);
  if (when == WeightGradients::now) {
    out_.backward_weight(kept.attended_NA, dout, stream);
  }
  const auto inputs = attention_inputs(pass, kept, scratch, rotary_PH, stream);
  const auto dqkv = split(gradients.qkv_NQ.data(), gradients.qkv_NQ.dtype(), pass);
  say_where();
  hooks_.attention_backward(attention_shape(pass), inputs.q, inputs.k, inputs.v,
                            attended(kept.attended_NA, pass), attended(dattended, pass),
                            kept.lse_NM.as<float>(), scratch.delta_NM.as<float>(), dqkv.q, dqkv.k,
                            dqkv.v, stream);
  backward_inputs(pass, kept, scratch, rotary_PH, dqkv, stream);
  if (when == WeightGradients::now) {
    hooks_.prefetch_rows(kept.attn_norm_RD, pass.rows, stream);
  }
  const TensorView dnorm_RD = norm_gradient(qkv_, gradients.qkv_NQ, pass, scratch, stream);
  if (when == WeightGradients::now) {
    qkv_.backward_weight(hooks_.gather_rows(kept.attn_norm_RD, pass.rows, stream), gradients.qkv_NQ,
                         stream);
  }
  attn_norm_.backward(dnorm_RD, kept.input_RD, kept.attn_statistics, dresidual_RD, stream);
}

void Block::backward_weight(const BlockActivations& kept, const ProductGradients& gradients,
                            ConstTensorView next_RD, device::StreamRef stream) const {
  const std::int64_t rows = kept.qkv_NQ.dim(0);
  const auto gather = [&](ConstTensorView x_RD, ConstTensorView then_RD) {
    return gather_then_prefetch(hooks_, x_RD, then_RD, rows, stream);
  };
  const ConstTensorView ddown = gather(gradients.down_RD, kept.mlp_norm_RD);
  down_.backward_weight(kept.activated_NF, ddown, stream);
  const ConstTensorView mlp_norm = gather(kept.mlp_norm_RD, gradients.out_RD);
  up_.backward_weight(mlp_norm, up_gradient(kept, gradients), stream);
  const ConstTensorView dout = gather(gradients.out_RD, kept.attn_norm_RD);
  out_.backward_weight(kept.attended_NA, dout, stream);
  const ConstTensorView attn_norm = gather(kept.attn_norm_RD, next_RD);
  qkv_.backward_weight(attn_norm, gradients.qkv_NQ, stream);
}

}  // namespace fourfold::model
