// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "layers.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/matmul.hpp>
#include <fourfold/kernels/norm.hpp>

namespace fourfold::model {

Linear::Linear(const Parameters& parameters, std::initializer_list<std::string> prefixes,
               ParallelHooks& hooks)
    : weight_(&parameters.at(*prefixes.begin() + ".weight")),
      bias_(parameters.find(*prefixes.begin() + ".bias")),
      hooks_(&hooks) {
  const std::int64_t in_features = weight_->box.extent[1];
  for (const std::string& prefix : prefixes) {
    const Parameter& part = parameters.at(prefix + ".weight");
    FOURFOLD_EXPECT(part.box.extent[1] == in_features);
    FOURFOLD_EXPECT(part.flat.begin == weight_->flat.begin + out_features_ * in_features);
    FOURFOLD_EXPECT(bias_ == nullptr || parameters.at(prefix + ".bias").flat.begin ==
                                            bias_->flat.begin + out_features_);
    out_features_ += part.box.extent[0];
    name_ += name_.empty() ? prefix : "/" + prefix.substr(prefix.rfind('.') + 1);
  }
  tiles_ = tiles_of(parameters, {weight_->flat.begin, out_features_ * in_features}, in_features);
}

ConstTensorView Linear::weight() const {
  return {weight_->weight.data(), weight_->weight.dtype(),
          Shape{out_features_, weight_->box.extent[1]}};
}

ConstTensorView Linear::bias(Range rows) const {
  if (bias_ == nullptr) {
    return {};
  }
  const ConstTensorView all(bias_->weight.data(), bias_->weight.dtype(), Shape{out_features_});
  return all.rows(rows.begin, rows.count);
}

TensorView Linear::bias_gradient(Range rows) const {
  if (bias_ == nullptr) {
    return {};
  }
  const TensorView all(bias_->gradient.data(), DType::f32, Shape{out_features_});
  return all.rows(rows.begin, rows.count);
}

void Linear::forward(ConstTensorView x_NI, TensorView y_NO, bool with_bias,
                     device::StreamRef stream) const {
  const auto bias_of = [&](Range rows) { return with_bias ? bias(rows) : ConstTensorView(); };
  if (tiles_.empty()) {
    const LinearMatmul product{
        .left = x_NI, .right = weight(), .result = y_NO, .bias_O = bias_of({0, out_features_})};
    make(product, stream,
         [&] { kernels::linear(x_NI, product.right, product.bias_O, y_NO, stream); });
    return;
  }
  for_each_tile(tiles_, Order::forward, *hooks_, stream, [&](const Tile& tile) {
    const LinearMatmul product{.left = x_NI,
                               .right = tile.weight_OI,
                               .result = y_NO,
                               .first = tile.rows.begin,
                               .bias_O = bias_of(tile.rows)};
    make(product, stream, [&] {
      kernels::linear_tile(x_NI, product.right, product.bias_O, y_NO, product.first, stream);
    });
  });
}

void Linear::forward_gelu(ConstTensorView x_NI, TensorView pre_NO, TensorView y_NO,
                          device::StreamRef stream) const {
  if (tiles_.empty()) {
    const LinearMatmul product{.left = x_NI,
                               .right = weight(),
                               .result = pre_NO,
                               .bias_O = bias({0, out_features_}),
                               .activated_NO = y_NO};
    make(product, stream,
         [&] { kernels::linear_gelu(x_NI, product.right, product.bias_O, pre_NO, y_NO, stream); });
    return;
  }
  forward(x_NI, pre_NO, true, stream);
  kernels::activate(kernels::Activation::gelu_tanh, pre_NO, y_NO, stream);
}

void Linear::forward_nothing(device::StreamRef stream) const {
  for_each_tile(tiles_, Order::forward, *hooks_, stream, [](const Tile& /*tile*/) {});
}

void Linear::backward_input(ConstTensorView dy_NO, TensorView dx_NI, TensorView sums,
                            device::StreamRef stream) const {
  using kernels::Write;
  LinearMatmul product{.pass = LinearMatmul::Pass::backward_input, .left = dy_NO};
  if (tiles_.empty()) {
    product.right = weight();
    product.result = dx_NI;
    make(product, stream, [&] {
      kernels::linear_backward_input(dy_NO, product.right, dx_NI, Write::replace, stream);
    });
    return;
  }
  const bool narrow = dx_NI.dtype() != DType::f32;
  product.result = narrow ? sums.rows(0, dx_NI.elements()).reshape(dx_NI.shape()) : dx_NI;
  for_each_tile(tiles_, Order::backward, *hooks_, stream, [&](const Tile& tile) {
    product.right = tile.weight_OI;
    product.first = tile.rows.begin;
    make(product, stream, [&] {
      kernels::linear_tile_backward_input(dy_NO, product.first, product.right, product.result,
                                          product.adds ? Write::accumulate : Write::replace,
                                          stream);
    });
    product.adds = true;
  });
  if (narrow) {
    kernels::cast(product.result, dx_NI, stream);
  }
}

void Linear::backward_input_gelu(ConstTensorView dy_NO, ConstTensorView pre_NI, TensorView dpre_NI,
                                 TensorView sums, device::StreamRef stream) const {
  if (tiles_.empty()) {
    const LinearMatmul product{.pass = LinearMatmul::Pass::backward_input,
                               .left = dy_NO,
                               .right = weight(),
                               .result = dpre_NI,
                               .pre_NI = pre_NI};
    make(product, stream, [&] {
      kernels::linear_backward_input_gelu(dy_NO, product.right, pre_NI, dpre_NI, stream);
    });
    return;
  }
  backward_input(dy_NO, dpre_NI, sums, stream);
  kernels::activate_backward(kernels::Activation::gelu_tanh, dpre_NI, pre_NI, dpre_NI, stream);
}

void Linear::backward_weight(ConstTensorView x_NI, ConstTensorView dy_NO,
                             device::StreamRef stream) const {
  LinearMatmul product{
      .pass = LinearMatmul::Pass::backward_weight, .left = dy_NO, .right = x_NI, .adds = true};
  if (tiles_.empty()) {
    product.result = {weight_->gradient.data(), DType::f32,
                      Shape{out_features_, weight_->box.extent[1]}};
    product.sums_O = bias_gradient({0, out_features_});
    make(product, stream, [&] {
      kernels::linear_backward_weight(x_NI, dy_NO, product.result, product.sums_O, stream);
    });
    return;
  }
  for_each_tile_gradient(tiles_, *hooks_, stream, [&](const Tile& tile) {
    product.result = tile.gradient_OI;
    product.first = tile.rows.begin;
    product.sums_O = bias_gradient(tile.rows);
    make(product, stream, [&] {
      kernels::linear_tile_backward_weight(x_NI, dy_NO, product.first, product.result,
                                           product.sums_O, stream);
    });
  });
}

Norm::Norm(const NormTraits& traits, const Parameters& parameters, const std::string& prefix)
    : weight_(&parameters.at(prefix + ".weight")),
      bias_(parameters.find(prefix + ".bias")),
      epsilon_(static_cast<float>(traits.epsilon)) {
  FOURFOLD_EXPECT((bias_ != nullptr) == (traits.kind == NormTraits::Kind::layer));
}

void Norm::forward(ConstTensorView x_RD, TensorView y_RD, const NormStatistics& statistics,
                   device::StreamRef stream) const {
  if (bias_ != nullptr) {
    kernels::layer_norm(x_RD, weight_->weight, bias_->weight, y_RD, statistics.mean_R,
                        statistics.rstd_R, epsilon_, stream);
  } else {
    kernels::rms_norm(x_RD, weight_->weight, y_RD, statistics.rstd_R, epsilon_, stream);
  }
}

void Norm::forward_of_sum(ConstTensorView x_RD, ConstTensorView residual_RD, TensorView sum_RD,
                          TensorView y_RD, const NormStatistics& statistics,
                          device::StreamRef stream) const {
  if (bias_ != nullptr) {
    kernels::add_layer_norm(x_RD, residual_RD, weight_->weight, bias_->weight, sum_RD, y_RD,
                            statistics.mean_R, statistics.rstd_R, epsilon_, stream);
  } else {
    kernels::add_rms_norm(x_RD, residual_RD, weight_->weight, sum_RD, y_RD, statistics.rstd_R,
                          epsilon_, stream);
  }
}

void Norm::backward(ConstTensorView dy_RD, ConstTensorView x_RD, const NormStatistics& statistics,
                    TensorView dx_RD, device::StreamRef stream) const {
  if (bias_ != nullptr) {
    kernels::layer_norm_backward(dy_RD, x_RD, weight_->weight, statistics.mean_R, statistics.rstd_R,
                                 dx_RD, weight_->gradient, bias_->gradient, stream);
  } else {
    kernels::rms_norm_backward(dy_RD, x_RD, weight_->weight, statistics.rstd_R, dx_RD,
                               weight_->gradient, stream);
  }
}

std::vector<Tile> tiles_of(const Parameters& parameters, Range flat, std::int64_t features) {
  std::vector<Tile> tiles;
  for (const Segment& segment : parameters.layout().segments) {
    const Range part = intersection(segment.flat, flat);
    if (segment.tile == WeightGroup::whole || part.count == 0) {
      continue;
    }
    const Range rows{(part.begin - flat.begin) / features, part.count / features};
    const Shape shape{rows.count, features};
    tiles.push_back({segment.part(), rows, parameters.weight_memory().at(part).reshape(shape),
                     parameters.gradient_memory().at(part).reshape(shape)});
  }
  return tiles;
}

}  // namespace fourfold::model
