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

Optimizer::Optimizer(const runfile::OptimConfig& config, const parallel::ParameterShare& share,
                     device::Arena& arena)
    : config_(config), share_(&share) {
  for (const std::string_view name : moment_names(config.name)) {
    moments_.push_back({name, arena.take(device::MemoryUse::optimizer, DType::f32,
                                         Shape{share.state_elements()})});
  }
}

void Optimizer::update(const Step& step, device::StreamRef stream) const {
  for (const parallel::ParameterShare::Run& run : share_->runs()) {
    update(run, step, stream);
  }
}

void Optimizer::update(const parallel::ParameterShare::Run& run, const Step& step,
                       device::StreamRef stream) const {
  const auto moment = [&](std::size_t index) {
    return moments_[index].flat.rows(run.state.begin, run.state.count);
  };
  const TensorView weight = share_->compute_dtype() == DType::f32 ? TensorView{} : run.weight;
  const auto weight_decay = static_cast<float>(run.decays ? config_.weight_decay : 0.0);
  if (config_.name == runfile::OptimizerKind::sgd) {
    kernels::sgd({.lr = static_cast<float>(step.lr),
                  .momentum = static_cast<float>(config_.momentum),
                  .weight_decay = weight_decay,
                  .gradient_scale = step.gradient_scale},
                 run.master, moment(0), run.gradient, weight, stream);
    return;
  }
  kernels::adam({.lr = static_cast<float>(step.lr),
                 .beta1 = config_.beta1,
                 .beta2 = config_.beta2,
                 .epsilon = static_cast<float>(config_.epsilon),
                 .weight_decay = weight_decay,
                 .decoupled = config_.name == runfile::OptimizerKind::adamw,
                 .step = step.update,
                 .gradient_scale = step.gradient_scale},
                run.master, moment(0), moment(1), run.gradient, weight, stream);
}

}  // namespace fourfold::train
