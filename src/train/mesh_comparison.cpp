// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "update_replay.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/train/mesh_comparison.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace fourfold::train {
namespace {

/// A tensor counts as at least this share of the average element.
constexpr double floor_share = 1e-2;

double sum_of_squares(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0, [](double sum, float value) {
    return sum + static_cast<double>(value) * static_cast<double>(value);
  });
}

/// Mean square of all elements of all tensors.
double mean_square(const ParameterValues& tensors) {
  double sum = 0;
  std::size_t elements = 0;
  for (const std::vector<float>& values : tensors) {
    sum += sum_of_squares(values);
    elements += values.size();
  }
  return elements == 0 ? 0 : sum / static_cast<double>(elements);
}

/// The L2 norm that a difference is held against.
double scale_of(const std::vector<float>& reference, double average_square) {
  const double floor =
      floor_share * floor_share * average_square * static_cast<double>(reference.size());
  return std::sqrt(std::max(sum_of_squares(reference), floor));
}

/// x / y, where 0 / 0 is nothing wrong, and nan (on either side) as wrong as can be.
double ratio(double x, double y) {
  if (x == 0) {
    return 0;
  }
  const double quotient = x / y;
  return std::isnan(quotient) ? INFINITY : quotient;
}

struct Place {
  std::size_t element = 0;
  double difference = -1;
};

double difference_of(float a, float b) {
  const double difference = std::fabs(static_cast<double>(a) - static_cast<double>(b));
  return std::isnan(difference) ? INFINITY : difference;
}

Place largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  Place place;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = difference_of(a[i], b[i]);
    if (difference > place.difference) {
      place = {i, difference};
    }
  }
  return place;
}

double tensor_error(const std::vector<float>& a, const std::vector<float>& b,
                    double average_square) {
  FOURFOLD_EXPECT(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = difference_of(a[i], b[i]);
    sum += difference * difference;
  }
  return ratio(std::sqrt(sum), scale_of(a, average_square));
}

/// The sign of a nan means nothing.
std::string number_text(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:.9g}", value);
}

std::string position_text(const Shape& shape, std::size_t element) {
  std::vector<std::int64_t> position(shape.rank());
  auto rest = static_cast<std::int64_t>(element);
  for (std::size_t dim = shape.rank(); dim-- > 0;) {
    position[dim] = rest % shape[dim];
    rest /= shape[dim];
  }
  return fmt::format("[{}]", fmt::join(position, ", "));
}

/// Walks through two traces side by side and keeps the largest errors and the first offence.
class Comparer {
 public:
  Comparer(const MeshTrace& reference, const MeshTrace& other, const Tolerances& tolerances)
      : a_(reference), b_(other), tolerances_(tolerances) {
    FOURFOLD_EXPECT(a_.table == b_.table && a_.steps.size() == b_.steps.size());
    update_errors_ = replay_updates(b_, a_.optim);
  }

  MeshComparison run() {
    compare_initial_weights();
    for (std::size_t step = 0; step < a_.steps.size(); ++step) {
      compare_step(step);
    }
    result_.ranks_agree = b_.disagreements.empty();
    if (!result_.ranks_agree) {
      offend(b_.disagreements.front());
    }
    return std::move(result_);
  }

 private:
  void offend(std::string text) {
    if (!result_.first_difference) {
      result_.first_difference = std::move(text);
    }
  }

  void compare_initial_weights() {
    result_.same_initial_weights = true;
    for (std::size_t tensor = 0; tensor < a_.table.size(); ++tensor) {
      const bool same = std::ranges::equal(
          a_.initial_weights[tensor], b_.initial_weights[tensor],
          [](float x, float y) { return std::bit_cast<int>(x) == std::bit_cast<int>(y); });
      if (!same) {
        result_.same_initial_weights = false;
        offend(fmt::format("the initial bits of {} differ", a_.table[tensor].name));
      }
    }
  }

  void compare_step(std::size_t step) {
    const StepTrace& a = a_.steps[step];
    const StepTrace& b = b_.steps[step];
    const double growth = std::exp2(static_cast<double>(step));
    const double loss_error = ratio(std::fabs(b.loss - a.loss), std::fabs(a.loss));
    result_.loss_error = std::max(result_.loss_error, loss_error);
    if (loss_error > growth * tolerances_.loss) {
      offend(fmt::format("step {}: the loss is {} instead of {} (error {:.1e})", step + 1,
                         number_text(b.loss), number_text(a.loss), loss_error));
    }
    if (a.fate == StepFate::skipped && b.fate == StepFate::skipped) {
      compare_weights(step);  // the gradients overflowed and say nothing
      return;
    }
    if (a.fate != b.fate) {
      offend(fmt::format("step {}: {} instead of {} (the gradients overflow f16 on one mesh only)",
                         step + 1, name(b.fate), name(a.fate)));
    }
    compare_gradients(step, growth * tolerances_.gradient);
    const double norm_error = ratio(std::fabs(b.grad_norm - a.grad_norm), a.grad_norm);
    result_.gradient_error = std::max(result_.gradient_error, norm_error);
    if (norm_error > growth * tolerances_.gradient) {
      offend(fmt::format("step {}: the gradient norm is {} instead of {} (error {:.1e})", step + 1,
                         number_text(b.grad_norm), number_text(a.grad_norm), norm_error));
    }
    compare_weights(step);
  }

  void compare_gradients(std::size_t step, double tolerance) {
    const ParameterValues& a = a_.steps[step].gradients;
    const ParameterValues& b = b_.steps[step].gradients;
    const double average = mean_square(a);
    for (std::size_t tensor = a_.table.size(); tensor-- > 0;) {
      const double error = tensor_error(a[tensor], b[tensor], average);
      result_.gradient_error = std::max(result_.gradient_error, error);
      if (error > tolerance) {
        offend_gradient(step, tensor, error, a, b);
      }
    }
  }

  void compare_weights(std::size_t step) {
    for (std::size_t tensor = 0; tensor < a_.table.size(); ++tensor) {
      const UpdateError& error = update_errors_[step][tensor];
      result_.weight_error = std::max(result_.weight_error, error.error);
      if (error.error > tolerances_.weight) {
        const model::ParameterSpec& spec = a_.table[tensor];
        offend(
            fmt::format("step {}: the weight of {} is off by {:.1e} of the update that its "
                        "gradients make; most at {}: {} instead of {}",
                        step + 1, spec.name, error.error, position_text(spec.shape, error.element),
                        number_text(b_.steps[step].weights[tensor][error.element]),
                        number_text(error.expected)));
      }
    }
  }

  void offend_gradient(std::size_t step, std::size_t tensor, double error, const ParameterValues& a,
                       const ParameterValues& b) {
    const model::ParameterSpec& spec = a_.table[tensor];
    const Place place = largest_difference(a[tensor], b[tensor]);
    offend(
        fmt::format("step {}: the gradient of {} differs by {:.1e} of its norm; most at {}: "
                    "{} instead of {}",
                    step + 1, spec.name, error, position_text(spec.shape, place.element),
                    number_text(b[tensor][place.element]), number_text(a[tensor][place.element])));
  }

  const MeshTrace& a_;
  const MeshTrace& b_;
  Tolerances tolerances_;
  std::vector<std::vector<UpdateError>> update_errors_;
  MeshComparison result_;
};

}  // namespace

Tolerances tolerances_for(DType precision) noexcept {
  return precision == DType::f32 ? Tolerances{}
                                 : Tolerances{.loss = 5e-4, .gradient = 0.1, .weight = 1e-4};
}

MeshComparison compare(const MeshTrace& reference, const MeshTrace& other,
                       const Tolerances& tolerances) {
  return Comparer(reference, other, tolerances).run();
}

}  // namespace fourfold::train
