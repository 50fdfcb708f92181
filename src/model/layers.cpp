// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "layers.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/matmul.hpp>
#include <fourfold/kernels/norm.hpp>

namespace fourfold::model {

Linear::Linear(const Parameters& parameters, std::initializer_list<std::string> prefixes)
    : weight_(&parameters.at(*prefixes.begin() + ".weight")),
      bias_(parameters.find(*prefixes.begin() + ".bias")) {
  for (const std::string& prefix : prefixes) {
    const Parameter& part = parameters.at(prefix + ".weight");
    const std::int64_t in_features = weight_->box.extent[1];
    FOURFOLD_EXPECT(part.box.extent[1] == in_features);
    FOURFOLD_EXPECT(part.flat.begin == weight_->flat.begin + out_features_ * in_features);
    FOURFOLD_EXPECT(bias_ == nullptr || parameters.at(prefix + ".bias").flat.begin ==
                                            bias_->flat.begin + out_features_);
    out_features_ += part.box.extent[0];
  }
}

ConstTensorView Linear::weight() const {
  return {weight_->weight.data(), weight_->weight.dtype(),
          Shape{out_features_, weight_->box.extent[1]}};
}

void Linear::forward(ConstTensorView x_NI, TensorView y_NO, bool with_bias,
                     device::StreamRef stream) const {
  ConstTensorView bias;
  if (bias_ != nullptr && with_bias) {
    bias = {bias_->weight.data(), bias_->weight.dtype(), Shape{out_features_}};
  }
  kernels::linear(x_NI, weight(), bias, y_NO, stream);
}

void Linear::backward_input(ConstTensorView dy_NO, TensorView dx_NI,
                            device::StreamRef stream) const {
  kernels::linear_backward_input(dy_NO, weight(), dx_NI, kernels::Write::replace, stream);
}

void Linear::backward_weight(ConstTensorView x_NI, ConstTensorView dy_NO,
                             device::StreamRef stream) const {
  const TensorView dweight(weight_->gradient.data(), DType::f32,
                           Shape{out_features_, weight_->box.extent[1]});
  TensorView dbias;
  if (bias_ != nullptr) {
    dbias = {bias_->gradient.data(), DType::f32, Shape{out_features_}};
  }
  kernels::linear_backward_weight(x_NI, dy_NO, dweight, dbias, stream);
}

Norm::Norm(const ModelConfig& config, const Parameters& parameters, const std::string& prefix)
    : weight_(&parameters.at(prefix + ".weight")),
      bias_(parameters.find(prefix + ".bias")),
      epsilon_(static_cast<float>(config.norm_epsilon)) {
  FOURFOLD_EXPECT((bias_ != nullptr) == (config.family == Family::gpt2));
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

}  // namespace fourfold::model
