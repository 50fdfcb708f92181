// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mesh_walk.hpp"

#include <fourfold/base/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace fourfold::train {

/// Whether two numbers are the same, bit for bit: a nan is like itself, 0 and -0 differ.
template <class Number>
bool same_bits(Number a, Number b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

inline double square(double x) {
  return x * x;
}
double sum_of_squares(const std::vector<float>& values);

/// x / y, where 0 / 0 is nothing wrong, and nan (on either side) as wrong as can be.
double ratio(double x, double y);

/// |a - b|; infinite where it is no number.
double difference_of(float a, float b);

/// Mean square of all elements of all tensors.
double mean_square(const ParameterValues& tensors);

/// The element where two tensors differ the most.
std::size_t largest_difference(const std::vector<float>& a, const std::vector<float>& b);
/// "[3, 17]"
std::string position_text(const Shape& shape, std::size_t element);

/// |b - a| / |a| in the L2 norm; a counts as at least as large as `floor` per element, and as
/// `least` as a whole.
double tensor_error(const std::vector<float>& a, const std::vector<float>& b, double floor,
                    double least = 0);
/// |b - a| in the L2 norm.
double distance(const std::vector<float>& a, const std::vector<float>& b);

/// A tensor, or a row or column of one that is a matrix.
struct TensorPart {
  enum class Kind : std::uint8_t { whole, row, column };
  Kind kind = Kind::whole;
  std::size_t index = 0;  ///< of the row or column
  double error = 0;
};
/// Of all tensors together, |rounded - a|^2 / |a|^2.
double rounding_share(const ParameterValues& a, const ParameterValues& rounded);

/// Of the tensor and, if its rank is 2, its rows and columns, that with the largest
/// |b - a| / |rounded - a|, as StepErrors says.
/// @param share  rounding_share(): a few elements may by chance round to the same numbers in two
///   ways, and what rounding makes of a tensor counts as no less than that share of it
TensorPart furthest_part(const std::vector<float>& a, const std::vector<float>& b,
                         const std::vector<float>& rounded, const Shape& shape, double share);

}  // namespace fourfold::train
