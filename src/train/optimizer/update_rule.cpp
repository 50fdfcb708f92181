// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/train/update_rule.hpp>

namespace fourfold::train {
namespace {

class Sgd final : public ElementwiseRule {
 public:
  explicit Sgd(const runfile::OptimConfig& config) : config_(config) {}

  std::span<const std::string_view> states() const noexcept override {
    static constexpr std::array<std::string_view, 1> names{"momentum"};
    return names;
  }
  void update(const Elements& elements, const UpdateStep& step,
              const std::optional<kernels::StochasticRounding>& rounding,
              device::StreamRef stream) const override {
    kernels::sgd({.lr = static_cast<float>(step.lr),
                  .momentum = static_cast<float>(config_.momentum),
                  .weight_decay = static_cast<float>(elements.decay ? config_.weight_decay : 0),
                  .gradient_scale = step.gradient_scale,
                  .place = elements.place,
                  .stochastic_rounding = rounding},
                 elements.master, elements.states[0], elements.gradient, elements.weight, stream);
  }

 private:
  runfile::OptimConfig config_;
};

class Adam final : public ElementwiseRule {
 public:
  explicit Adam(const runfile::OptimConfig& config) : config_(config) {}

  std::span<const std::string_view> states() const noexcept override {
    static constexpr std::array<std::string_view, 2> names{"exp_avg", "exp_avg_sq"};
    return names;
  }
  void update(const Elements& elements, const UpdateStep& step,
              const std::optional<kernels::StochasticRounding>& rounding,
              device::StreamRef stream) const override {
    kernels::adam({.lr = static_cast<float>(step.lr),
                   .beta1 = config_.beta1,
                   .beta2 = config_.beta2,
                   .epsilon = static_cast<float>(config_.epsilon),
                   .weight_decay = static_cast<float>(elements.decay ? config_.weight_decay : 0),
                   .decoupled = config_.name == runfile::OptimizerKind::adamw,
                   .step = step.update,
                   .gradient_scale = step.gradient_scale,
                   .place = elements.place,
                   .stochastic_rounding = rounding},
                  elements.master, elements.states[0], elements.states[1], elements.gradient,
                  elements.weight, stream);
  }

 private:
  runfile::OptimConfig config_;
};

/// Of what is not trained: its weights are its masters, rounded to nearest.
class NoUpdate final : public ElementwiseRule {
 public:
  std::span<const std::string_view> states() const noexcept override { return {}; }
  void update(const Elements& elements, const UpdateStep& /*step*/,
              const std::optional<kernels::StochasticRounding>& /*rounding*/,
              device::StreamRef stream) const override {
    if (elements.weight) {
      kernels::cast(elements.master, elements.weight, stream, elements.place);
    }
  }
};

}  // namespace

Elements Elements::at(Range part) const {
  const auto of = [&](const auto& view) {
    return view ? view.rows(part.begin - state.begin, part.count) : view;
  };
  Elements result = *this;
  result.state = part;
  result.master = of(master);
  for (TensorView& each : result.states) {
    each = of(each);
  }
  result.gradient = of(gradient);
  result.weight = of(weight);
  return result;
}

UpdateRules rules_of(const runfile::OptimConfig& config) {
  std::shared_ptr<const UpdateRule> rule;
  if (config.name == runfile::OptimizerKind::sgd) {
    rule = std::make_shared<Sgd>(config);
  } else {
    rule = std::make_shared<Adam>(config);
  }
  UpdateRules rules;
  rules.fill(rule);
  rules[static_cast<std::size_t>(model::OptimizerGroup::frozen)] = std::make_shared<NoUpdate>();
  return rules;
}

}  // namespace fourfold::train
