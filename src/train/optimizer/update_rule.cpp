// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/train/update_rule.hpp>

namespace fourfold::train {
namespace {

/// Whose update is a call of one kernel.
class KernelRule : public ElementwiseRule {
 public:
  explicit KernelRule(const runfile::OptimConfig& config) : config_(config) {}

  void update(const Elements& elements, const UpdateStep& step,
              device::StreamRef stream) const final {
    call(false, elements, step, stream);
  }
  void reference_update(const Shape& /*shape*/, const Elements& whole,
                        const UpdateStep& step) const final {
    call(true, whole, step, {});
  }

 protected:
  /// The kernel, or its reference.
  virtual void call(bool reference, const Elements& elements, const UpdateStep& step,
                    device::StreamRef stream) const = 0;
  float decay_of(const Elements& elements) const {
    return static_cast<float>(elements.decay ? config_.weight_decay : 0);
  }
  runfile::OptimConfig config_;
};

class Sgd final : public KernelRule {
 public:
  using KernelRule::KernelRule;
  std::span<const std::string_view> states() const noexcept override {
    static constexpr std::array<std::string_view, 1> names{"momentum"};
    return names;
  }

 private:
  void call(bool reference, const Elements& elements, const UpdateStep& step,
            device::StreamRef stream) const override {
    (reference ? kernels::reference::sgd : kernels::sgd)(
        {.lr = static_cast<float>(step.lr),
         .momentum = static_cast<float>(config_.momentum),
         .weight_decay = decay_of(elements),
         .gradient_scale = step.gradient_scale,
         .place = elements.place,
         .stochastic_rounding = elements.rounding},
        elements.master, elements.states[0], elements.gradient, elements.weight, stream);
  }
};

class Adam final : public KernelRule {
 public:
  using KernelRule::KernelRule;
  std::span<const std::string_view> states() const noexcept override {
    static constexpr std::array<std::string_view, 2> names{"exp_avg", "exp_avg_sq"};
    return names;
  }

 private:
  void call(bool reference, const Elements& elements, const UpdateStep& step,
            device::StreamRef stream) const override {
    (reference ? kernels::reference::adam : kernels::adam)(
        {.lr = static_cast<float>(step.lr),
         .beta1 = config_.beta1,
         .beta2 = config_.beta2,
         .epsilon = static_cast<float>(config_.epsilon),
         .weight_decay = decay_of(elements),
         .decoupled = config_.name == runfile::OptimizerKind::adamw,
         .step = step.update,
         .gradient_scale = step.gradient_scale,
         .place = elements.place,
         .stochastic_rounding = elements.rounding},
        elements.master, elements.states[0], elements.states[1], elements.gradient, elements.weight,
        stream);
  }
};

/// Of what is not trained: its weights are its masters, rounded to nearest.
class NoUpdate final : public ElementwiseRule {
 public:
  std::span<const std::string_view> states() const noexcept override { return {}; }
  void update(const Elements& elements, const UpdateStep& /*step*/,
              device::StreamRef stream) const override {
    if (elements.weight) {
      kernels::cast(elements.master, elements.weight, stream, elements.place);
    }
  }
  void reference_update(const Shape& /*shape*/, const Elements& /*whole*/,
                        const UpdateStep& /*step*/) const override {}
};

std::shared_ptr<const UpdateRule> rule_named(const runfile::OptimConfig& config) {
  switch (config.name) {
    case runfile::OptimizerKind::sgd:
      return std::make_shared<Sgd>(config);
    case runfile::OptimizerKind::adam:
    case runfile::OptimizerKind::adamw:
      break;
  }
  return std::make_shared<Adam>(config);
}

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
  UpdateRules rules;
  rules.fill(rule_named(config));
  rules[static_cast<std::size_t>(model::OptimizerGroup::frozen)] = std::make_shared<NoUpdate>();
  return rules;
}

}  // namespace fourfold::train
