// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tensor_difference.hpp"

#include <fourfold/base/contract.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace fourfold::train {
namespace {

/// Sums of squares, of some elements.
struct Differences {
  double size = 0;      ///< of a
  double off = 0;       ///< of b - a
  double rounding = 0;  ///< of rounded - a

  void operator+=(const Differences& other) {
    size += other.size;
    off += other.off;
    rounding += other.rounding;
  }
};

}  // namespace

double sum_of_squares(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [](double sum, float value) { return sum + square(value); });
}

double ratio(double x, double y) {
  if (x == 0) {
    return 0;
  }
  const double quotient = x / y;
  return std::isnan(quotient) ? INFINITY : quotient;
}

double difference_of(float a, float b) {
  const double exact = a;
  const double difference = std::fabs(exact - b);
  return std::isnan(difference) ? INFINITY : difference;
}

double mean_square(const ParameterValues& tensors) {
  double sum = 0;
  std::size_t elements = 0;
  for (const std::vector<float>& values : tensors) {
    sum += sum_of_squares(values);
    elements += values.size();
  }
  return elements == 0 ? 0 : sum / static_cast<double>(elements);
}

std::size_t largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t element = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (difference_of(a[i], b[i]) > difference_of(a[element], b[element])) {
      element = i;
    }
  }
  return element;
}

std::string position_text(const Shape& shape, std::size_t element) {
  std::vector<std::int64_t> position(shape.rank());
  std::int64_t rest = element;
  for (std::size_t dim = shape.rank(); dim-- > 0;) {
    position[dim] = rest % shape[dim];
    rest /= shape[dim];
  }
  return fmt::format("[{}]", fmt::join(position, ", "));
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  FOURFOLD_EXPECT(a.size() == b.size());
  double off = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    off += square(difference_of(a[i], b[i]));
  }
  return std::sqrt(off);
}

double tensor_error(const std::vector<float>& a, const std::vector<float>& b, double floor,
                    double least) {
  const double of_elements = square(floor) * static_cast<double>(a.size());
  const double size = std::max({sum_of_squares(a), of_elements, square(least)});
  return ratio(distance(a, b), std::sqrt(size));
}

double rounding_share(const ParameterValues& a, const ParameterValues& rounded) {
  FOURFOLD_EXPECT(a.size() == rounded.size());
  Differences all;
  for (std::size_t tensor = 0; tensor < a.size(); ++tensor) {
    for (std::size_t i = 0; i < a[tensor].size(); ++i) {
      all += {square(a[tensor][i]), 0, square(difference_of(a[tensor][i], rounded[tensor][i]))};
    }
  }
  return ratio(all.rounding, all.size);
}

TensorPart furthest_part(const std::vector<float>& a, const std::vector<float>& b,
                         const std::vector<float>& rounded, const Shape& shape, double share) {
  FOURFOLD_EXPECT(a.size() == b.size() && a.size() == rounded.size());
  const bool is_matrix = shape.rank() == 2;
  const std::size_t columns = is_matrix ? shape[1] : 1;
  Differences whole;
  std::vector<Differences> of_row(is_matrix ? shape[0] : 0);
  std::vector<Differences> of_column(is_matrix ? columns : 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Differences here{square(a[i]), square(difference_of(a[i], b[i])),
                           square(difference_of(a[i], rounded[i]))};
    whole += here;
    if (is_matrix) {
      of_row[i / columns] += here;
      of_column[i % columns] += here;
    }
  }
  whole.rounding = std::max(whole.rounding, share * whole.size);
  TensorPart furthest{.error = ratio(std::sqrt(whole.off), std::sqrt(whole.rounding))};
  const auto look_at = [&](const std::vector<Differences>& lines, TensorPart::Kind kind) {
    const double average =
        whole.rounding / static_cast<double>(std::max<std::size_t>(lines.size(), 1));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const double usual = std::max(average, ratio(whole.rounding, whole.size) * lines[i].size);
      const double error = ratio(std::sqrt(lines[i].off), std::sqrt(lines[i].rounding + usual));
      if (error > furthest.error) {
        furthest = {kind, i, error};
      }
    }
  };
  look_at(of_row, TensorPart::Kind::row);
  look_at(of_column, TensorPart::Kind::column);
  return furthest;
}

}  // namespace fourfold::train
