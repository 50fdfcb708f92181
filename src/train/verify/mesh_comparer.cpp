// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "mesh_comparer.hpp"

#include "tensor_difference.hpp"

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

}  // namespace

MeshComparer::MeshComparer(const runfile::OptimConfig& optim,
                           const std::vector<model::ParameterSpec>& table,
                           const Tolerances& tolerances)
    : optim_(optim),
      table_(table),
      tolerances_({.loss = tolerances.loss,
                   .gradient = tolerances.gradient,
                   .rounding = tolerances.rounding,
                   .weight = tolerances.weight,
                   .product = tolerances.product}),
      least_gradient_(tolerances.least_gradient),
      replay_(optim_, table_) {}

template <class Words>
void MeshComparer::note(double StepErrors::*kind, double error, const Words& words) {
  result_.largest.*kind = std::max(result_.largest.*kind, error);
  if (error > tolerances_.*kind) {
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
  note(&StepErrors::product, trace.products.largest,
       [&] { return whose + trace.products.first_wrong; });
}

void MeshComparer::compare_losses(const StepTrace& a, const StepTrace& b) {
  const double error = ratio(std::fabs(b.loss - a.loss), std::fabs(a.loss));
  note(&StepErrors::loss, error, [&] {
    return fmt::format("the loss is {} instead of {} (error {:.1e})", number_text(b.loss),
                       number_text(a.loss), error);
  });
}

void MeshComparer::compare_gradients(const StepTrace& a, const StepTrace& b,
                                     const ParameterValues* rounded) {
  if (a.status != b.status) {
    note(&StepErrors::gradient, INFINITY, [&] {
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
    const double least = std::isfinite(rounding) ? least_gradient_ * rounding : 0;
    least_norm2 += least * least;
    compare_gradient(tensor, a.gradients[tensor], b.gradients[tensor], floor, least);
    if (rounded != nullptr) {
      compare_rounding(tensor, a.gradients[tensor], b.gradients[tensor], (*rounded)[tensor], share);
    }
  }
  const double error =
      ratio(std::fabs(b.grad_norm - a.grad_norm), std::max(a.grad_norm, std::sqrt(least_norm2)));
  note(&StepErrors::gradient, error, [&] {
    return fmt::format("the gradient norm is {} instead of {} (error {:.1e})",
                       number_text(b.grad_norm), number_text(a.grad_norm), error);
  });
}

void MeshComparer::compare_gradient(std::size_t tensor, const std::vector<float>& a,
                                    const std::vector<float>& b, double floor, double least) {
  const double error = tensor_error(a, b, floor, least);
  note(&StepErrors::gradient, error, [&] {
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
  note(&StepErrors::rounding, part.error, [&] {
    const std::size_t element = largest_difference(a, b);
    return fmt::format(
        "{} differs by {:.1f} times what rounding makes there; of the whole most at {}: {} instead "
        "of {}",
        text_of(part, spec.name), part.error, position_text(spec.shape, element),
        number_text(b[element]), number_text(a[element]));
  });
}

void MeshComparer::compare_weights(const StepStart& start, const StepTrace& b) {
  const std::vector<UpdateError> errors = replay_.step(start.weights, b.gradients, b.weights);
  for (std::size_t tensor = 0; tensor < table_.size(); ++tensor) {
    const UpdateError& error = errors[tensor];
    note(&StepErrors::weight, error.error, [&] {
      const model::ParameterSpec& spec = table_[tensor];
      return fmt::format(
          "the weight of {} is off by {:.1e} of the update that its gradients make; most at {}: {} "
          "instead of {}",
          spec.name, error.error, position_text(spec.shape, error.element),
          number_text(b.weights[tensor][error.element]), number_text(error.expected));
    });
  }
}

}  // namespace fourfold::train
