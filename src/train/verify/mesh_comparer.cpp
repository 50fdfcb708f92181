// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "mesh_comparer.hpp"

#include "tensor_difference.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/runfile/learning_rate.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fourfold::train {
namespace {

/// A tensor counts as at least this share of the average element.
constexpr double floor_share = 1e-2;

/// The sign of a nan means nothing.
std::string number_text(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:.9g}", value);
}

/// "the gradient of W", or "row 3 of the gradient of W".
std::string text_of(const TensorPart& part, const std::string& name) {
  return part.kind == TensorPart::Kind::whole
             ? fmt::format("the gradient of {}", name)
             : fmt::format("{} {} of the gradient of {}",
                           part.kind == TensorPart::Kind::row ? "row" : "column", part.index, name);
}

TensorView flat(std::vector<float>& values) {
  return {values.data(), Shape{std::ssize(values)}};
}

/// What clipping multiplies the gradients of a step with; NaN when they overflowed.
float clipping(const std::vector<model::ParameterSpec>& table, const ParameterValues& gradients,
               double clip_norm) {
  double squares = 0;
  for (std::size_t tensor = 0; tensor < table.size(); ++tensor) {
    squares += table[tensor].is_trainable() ? sum_of_squares(gradients[tensor]) : 0;
  }
  float norm = 0;
  float scale = 1;
  const Shape scalar{1};
  kernels::reference::clip_scale({&squares, scalar}, static_cast<float>(clip_norm), 1.0F,
                                 {&norm, scalar}, {&scale, scalar}, {});
  return scale;
}

/// |after - expected| / |expected - before|, in the L2 norm: a share of the update. What the
/// rounding of weights to f32 can make (2^-23 of their norm) does not count.
double update_error(const std::vector<float>& before, const std::vector<float>& after,
                    const std::vector<float>& expected) {
  constexpr double rounding = 0x1p-23;
  const double beyond = distance(after, expected) - rounding * std::sqrt(sum_of_squares(expected));
  if (!std::isnan(beyond) && beyond <= 0) {
    return 0;
  }
  const double share = beyond / distance(expected, before);
  return std::isnan(share) ? INFINITY : share;
}

}  // namespace

MeshComparer::MeshComparer(const runfile::OptimConfig& optim,
                           const std::vector<model::ParameterSpec>& table,
                           const Tolerances& tolerances)
    : optim_(optim), table_(table), tolerances_(tolerances), rules_(rules_of(optim)) {
  for (const model::ParameterSpec& spec : table) {
    states_.emplace_back(rule_of(rules_, spec.group)->states().size(),
                         std::vector<float>(spec.shape.elements()));
  }
}

template <class Words>
void MeshComparer::note(double StepErrors::*kind, double tolerance, double error,
                        const Words& words) {
  result_.largest.*kind = std::max(result_.largest.*kind, error);
  if (error > tolerance) {
    if (result_.differing_steps.empty() || result_.differing_steps.back() != result_.steps) {
      result_.differing_steps.push_back(result_.steps);
    }
    offend(fmt::format("step {}: {}", result_.steps, words()));
  }
}

void MeshComparer::offend(std::string text) {
  if (!result_.first_difference) {
    result_.first_difference = std::move(text);
  }
}

void MeshComparer::compare_initial_weights(const ParameterValues& reference,
                                           const ParameterValues& other) {
  result_.same_initial_weights = true;
  for (std::size_t tensor = 0; tensor < table_.size(); ++tensor) {
    if (!std::ranges::equal(reference[tensor], other[tensor], same_bits<float>)) {
      result_.same_initial_weights = false;
      offend(fmt::format("the initial bits of {} differ", table_[tensor].name));
    }
  }
}

void MeshComparer::compare_step(const StepStart& start, const StepTrace& reference,
                                const StepTrace& other, const ParameterValues* rounded) {
  ++result_.steps;
  result_.losses.push_back(other.loss);
  compare_products(other, "");
  if (&reference != &other) {
    compare_products(reference, "the reference, ");
  }
  compare_losses(reference, other);
  if (reference.status == StepStatus::skipped && other.status == StepStatus::skipped) {
    ++result_.skipped_steps;  // the gradients overflowed and say nothing
  } else {
    compare_gradients(reference, other, rounded);
  }
  compare_weights(start, other);
}

MeshComparison MeshComparer::finish(const std::vector<std::string>& disagreements) {
  result_.ranks_agree = disagreements.empty();
  if (!result_.ranks_agree) {
    offend(disagreements.front());
  }
  return std::move(result_);
}

void MeshComparer::compare_products(const StepTrace& trace, const char* whose) {
  result_.checked_products += trace.products.products;
  note(&StepErrors::product, tolerances_.product, trace.products.largest,
       [&] { return whose + trace.products.first_wrong; });
}

void MeshComparer::compare_losses(const StepTrace& a, const StepTrace& b) {
  const double error = ratio(std::fabs(b.loss - a.loss), std::fabs(a.loss));
  note(&StepErrors::loss, tolerances_.loss, error, [&] {
    return fmt::format("the loss is {} instead of {} (error {:.1e})", number_text(b.loss),
                       number_text(a.loss), error);
  });
}

void MeshComparer::compare_gradients(const StepTrace& a, const StepTrace& b,
                                     const ParameterValues* rounded) {
  if (a.status != b.status) {
    note(&StepErrors::gradient, tolerances_.gradient, INFINITY, [&] {
      return fmt::format("{} instead of {} (the gradients overflow f16 on one mesh only)",
                         name(b.status), name(a.status));
    });
  }
  const double floor = floor_share * std::sqrt(mean_square(a.gradients));
  const double share = rounded == nullptr ? 0 : rounding_share(a.gradients, *rounded);
  double least_norm2 = 0;
  for (std::size_t tensor = table_.size(); tensor-- > 0;) {
    const double rounding =
        rounded == nullptr ? 0 : distance(a.gradients[tensor], (*rounded)[tensor]);
    const double least = std::isfinite(rounding) ? tolerances_.least_gradient * rounding : 0;
    least_norm2 += least * least;
    compare_gradient(tensor, a.gradients[tensor], b.gradients[tensor], floor, least);
    if (rounded != nullptr) {
      compare_rounding(tensor, a.gradients[tensor], b.gradients[tensor], (*rounded)[tensor], share);
    }
  }
  const double error =
      ratio(std::fabs(b.grad_norm - a.grad_norm), std::max(a.grad_norm, std::sqrt(least_norm2)));
  note(&StepErrors::gradient, tolerances_.gradient, error, [&] {
    return fmt::format("the gradient norm is {} instead of {} (error {:.1e})",
                       number_text(b.grad_norm), number_text(a.grad_norm), error);
  });
}

void MeshComparer::compare_gradient(std::size_t tensor, const std::vector<float>& a,
                                    const std::vector<float>& b, double floor, double least) {
  const double error = tensor_error(a, b, floor, least);
  note(&StepErrors::gradient, tolerances_.gradient, error, [&] {
    const model::ParameterSpec& spec = table_[tensor];
    const std::size_t element = largest_difference(a, b);
    return fmt::format(
        "the gradient of {} differs by {:.1e} of its norm; most at {}: {} instead of {}", spec.name,
        error, position_text(spec.shape, element), number_text(b[element]),
        number_text(a[element]));
  });
}

void MeshComparer::compare_rounding(std::size_t tensor, const std::vector<float>& a,
                                    const std::vector<float>& b, const std::vector<float>& rounded,
                                    double share) {
  const model::ParameterSpec& spec = table_[tensor];
  const TensorPart part = furthest_part(a, b, rounded, spec.shape, share);
  note(&StepErrors::rounding, tolerances_.rounding, part.error, [&] {
    const std::size_t element = largest_difference(a, b);
    return fmt::format(
        "{} differs by {:.1f} times what rounding makes there; of the whole most at {}: {} instead "
        "of {}",
        text_of(part, spec.name), part.error, position_text(spec.shape, element),
        number_text(b[element]), number_text(a[element]));
  });
}

void MeshComparer::compare_weights(const StepStart& start, const StepTrace& b) {
  const float scale = clipping(table_, b.gradients, optim_.clip_norm);
  for (std::size_t tensor = 0; tensor < table_.size(); ++tensor) {
    const std::vector<float>& before = start.weights[tensor];
    const std::vector<float>& after = b.weights[tensor];
    FOURFOLD_EXPECT(std::ssize(b.gradients[tensor]) == table_[tensor].shape.elements() &&
                    before.size() == b.gradients[tensor].size());
    std::vector<float> expected = before;
    update(tensor, scale, b.gradients[tensor], expected);
    const double error = update_error(before, after, expected);
    note(&StepErrors::weight, tolerances_.weight, error, [&] {
      const model::ParameterSpec& spec = table_[tensor];
      const std::size_t element = largest_difference(after, expected);
      return fmt::format(
          "the weight of {} is off by {:.1e} of the update that its gradients make; most at {}: {} "
          "instead of {}",
          spec.name, error, position_text(spec.shape, element), number_text(after[element]),
          number_text(expected[element]));
    });
  }
  updates_ += std::isfinite(scale) ? 1 : 0;
}

void MeshComparer::update(std::size_t tensor, float scale, const std::vector<float>& gradient,
                          std::vector<float>& weights) {
  const model::ParameterSpec& spec = table_[tensor];
  Elements whole{.state = {0, std::ssize(weights)},
                 .master = flat(weights),
                 .states = {},
                 .gradient = {gradient.data(), Shape{std::ssize(gradient)}},
                 .weight = {},
                 .decay = spec.decay,
                 .place = kernels::MemorySpace::host};
  std::ranges::transform(states_[tensor], whole.states.begin(), flat);
  rule_of(rules_, spec.group)
      ->reference_update(spec.shape, whole,
                         {.update = updates_ + 1,
                          .lr = runfile::learning_rate(optim_.schedule, result_.steps - 1),
                          .gradient_scale = &scale});
}

}  // namespace fourfold::train
