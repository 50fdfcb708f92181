// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "offloaded_update.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/train/optimizer.hpp>

#include <array>

namespace fourfold::train {

using parallel::ParameterShare;

struct Optimizer::Elements {
  TensorView master;
  std::array<TensorView, 2> moments;
  ConstTensorView gradient;
  TensorView weight;  ///< absent: the master is what products read
  bool decays = false;
  kernels::Place place = kernels::Place::device;
  bool tries = false;
};

std::span<const std::string_view> moment_names(runfile::OptimizerKind kind) noexcept {
  static constexpr std::array<std::string_view, 2> adam{"exp_avg", "exp_avg_sq"};
  static constexpr std::array<std::string_view, 1> sgd{"momentum"};
  return kind == runfile::OptimizerKind::sgd ? std::span<const std::string_view>(sgd)
                                             : std::span<const std::string_view>(adam);
}

Optimizer::Optimizer(const runfile::OptimConfig& config, const ParameterShare& share,
                     StateTier& tier, double buffer_mb, std::span<const std::size_t> order)
    : config_(config), share_(&share) {
  std::vector<TensorView> flat;
  for (const std::string_view name : moment_names(config.name)) {
    flat.push_back(
        tier.state().take(device::MemoryUse::optimizer, DType::f32, Shape{share.state_elements()}));
    moments_.push_back({name, flat.back()});
  }
  if (tier.is_offloaded()) {
    offloaded_ = std::make_unique<OffloadedUpdate>(tier, buffer_mb, share, std::move(flat), order);
  }
}

Optimizer::~Optimizer() = default;

void Optimizer::begin_step() {
  if (offloaded_) {
    offloaded_->begin_step();
  }
}

void Optimizer::update(const ParameterShare::Run& run, const Step& step, device::StreamRef stream,
                       Makes makes) {
  const bool has_weight = run.weight.data() != run.master.data();
  FOURFOLD_EXPECT(makes == Makes::all || (has_weight && !offloaded_));
  if (!offloaded_) {
    Elements elements{.master = run.master,
                      .moments = {},
                      .gradient = run.gradient,
                      .weight = has_weight && makes != Makes::state ? run.weight : TensorView(),
                      .decays = run.decays,
                      .tries = makes == Makes::weights};
    for (std::size_t i = 0; i < moments_.size(); ++i) {
      elements.moments[i] = moments_[i].flat.rows(run.state.begin, run.state.count);
    }
    update(elements, step, stream);
    return;
  }
  const auto on_host = [this, step](const OffloadedUpdate::Tile& tile) {
    Step host_step = step;
    host_step.gradient_scale = tile.gradient_scale;
    update(
        {tile.master, tile.moments, tile.gradient, tile.weight, tile.decays, kernels::Place::host},
        host_step, {});
  };
  offloaded_->update(run, step.gradient_scale, on_host, stream);
}

void Optimizer::update(const Elements& elements, const Step& step, device::StreamRef stream) const {
  const auto weight_decay = static_cast<float>(elements.decays ? config_.weight_decay : 0.0);
  if (config_.name == runfile::OptimizerKind::sgd) {
    kernels::sgd({.lr = static_cast<float>(step.lr),
                  .momentum = static_cast<float>(config_.momentum),
                  .weight_decay = weight_decay,
                  .gradient_scale = step.gradient_scale,
                  .place = elements.place,
                  .tries = elements.tries},
                 elements.master, elements.moments[0], elements.gradient, elements.weight, stream);
    return;
  }
  kernels::adam({.lr = static_cast<float>(step.lr),
                 .beta1 = config_.beta1,
                 .beta2 = config_.beta2,
                 .epsilon = static_cast<float>(config_.epsilon),
                 .weight_decay = weight_decay,
                 .decoupled = config_.name == runfile::OptimizerKind::adamw,
                 .step = step.update,
                 .gradient_scale = step.gradient_scale,
                 .place = elements.place,
                 .tries = elements.tries},
                elements.master, elements.moments[0], elements.moments[1], elements.gradient,
                elements.weight, stream);
}

void Optimizer::update_weights_from_masters(device::StreamRef stream) {
  if (offloaded_) {
    offloaded_->weights_from_masters(stream);
  } else {
    share_->update_weights_from_masters(stream);
  }
}

void Optimizer::settle() {
  if (offloaded_) {
    offloaded_->settle();
  }
}

}  // namespace fourfold::train
