// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/train/optimizer.hpp>

#include <array>

namespace fourfold::train {

std::span<const std::string_view> moment_names(runfile::OptimizerKind kind) noexcept {
  static constexpr std::array<std::string_view, 2> adam{"exp_avg", "exp_avg_sq"};
  static constexpr std::array<std::string_view, 1> sgd{"momentum"};
  return kind == runfile::OptimizerKind::sgd ? std::span<const std::string_view>(sgd)
                                             : std::span<const std::string_view>(adam);
}

Optimizer::Optimizer(const runfile::OptimConfig& config, const model::Parameters& parameters,
                     device::Arena& arena)
    : config_(config), parameters_(&parameters) {
  for (const std::string_view name : moment_names(config.name)) {
    moments_.push_back(
        {name, arena.take(device::MemoryUse::optimizer, DType::f32, parameters.masters().shape())});
  }
}

void Optimizer::update(std::int64_t update, double lr, const float* gradient_scale,
                       device::StreamRef stream) const {
  for (const model::UnitMemory& unit : parameters_->units()) {
    for (const model::DecayRange& range : unit.decay_ranges) {
      update_range(range, update, lr, gradient_scale, stream);
    }
  }
}

void Optimizer::update_range(const model::DecayRange& range, std::int64_t update, double lr,
                             const float* gradient_scale, device::StreamRef stream) const {
  const auto part = [&](TensorView flat) { return flat.rows(range.flat.begin, range.flat.count); };
  const TensorView master = part(parameters_->masters());
  const TensorView gradient = part(parameters_->gradients());
  const TensorView weight =
      parameters_->compute_dtype() == DType::f32 ? TensorView{} : part(parameters_->weights());
  const auto weight_decay = static_cast<float>(range.decays ? config_.weight_decay : 0.0);
  if (config_.name == runfile::OptimizerKind::sgd) {
    const kernels::SgdStep step{.lr = static_cast<float>(lr),
                                .momentum = static_cast<float>(config_.momentum),
                                .weight_decay = weight_decay,
                                .gradient_scale = gradient_scale};
    kernels::sgd(step, master, part(moments_[0].flat), gradient, weight, stream);
    return;
  }
  const kernels::AdamStep step{.lr = static_cast<float>(lr),
                               .beta1 = config_.beta1,
                               .beta2 = config_.beta2,
                               .epsilon = static_cast<float>(config_.epsilon),
                               .weight_decay = weight_decay,
                               .decoupled = config_.name == runfile::OptimizerKind::adamw,
                               .step = update,
                               .gradient_scale = gradient_scale};
  kernels::adam(step, master, part(moments_[0].flat), part(moments_[1].flat), gradient, weight,
                stream);
}

}  // namespace fourfold::train
