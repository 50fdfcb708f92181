// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "matmul_sums.hpp"

#include "tensor_difference.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/activation.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace fourfold::train {
namespace {

constexpr double single = 0x1p-24;

/// V vectors for so many rows: [V][rows].
struct Vectors {
  std::int64_t count = 0;
  std::int64_t rows = 0;
  std::vector<double> values;
  double at(std::int64_t vector, std::int64_t row) const { return values[vector * rows + row]; }
  double* of(std::int64_t vector) { return values.data() + vector * rows; }
  const double* of(std::int64_t vector) const { return values.data() + vector * rows; }
};

Vectors zeros(std::int64_t count, std::int64_t rows) {
  return {count, rows, std::vector<double>(count * rows)};
}

/// Those that pick `rows` of so many.
Vectors unit_vectors(const std::vector<std::int64_t>& rows, std::int64_t of) {
  Vectors vectors = zeros(std::ssize(rows), of);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    vectors.of(i)[rows[i]] = 1;
  }
  return vectors;
}

Vectors random_signs(std::int64_t count, std::int64_t rows, PhiloxKey key) {
  Vectors vectors = zeros(count, rows);
  for (std::int64_t row = 0; row < rows; ++row) {
    const PhiloxBlock random = philox(key, row);
    for (std::int64_t vector = 0; vector < count; ++vector) {
      vectors.of(vector)[row] = (random.word[vector] & 1U) != 0 ? 1 : -1;
    }
  }
  return vectors;
}

double same(double x) {
  return x;
}

/// [V][rows] times the matrix: [V][columns], of its elements or their squares.
template <double (*of_element)(double)>
Vectors times(const Vectors& vectors, const HostMatrix& matrix) {
  FOURFOLD_EXPECT(vectors.rows == matrix.rows);
  Vectors result = zeros(vectors.count, matrix.columns);
  if (matrix.column_stride == 1) {
    for (std::int64_t row = 0; row < matrix.rows; ++row) {
      const float* const x = matrix.values + row * matrix.row_stride;
      for (std::int64_t vector = 0; vector < vectors.count; ++vector) {
        const double weight = vectors.at(vector, row);
        double* const sum = result.of(vector);
        for (std::int64_t column = 0; weight != 0 && column < matrix.columns; ++column) {
          sum[column] += weight * of_element(x[column]);
        }
      }
    }
    return result;
  }
  FOURFOLD_EXPECT(matrix.row_stride == 1);
  for (std::int64_t column = 0; column < matrix.columns; ++column) {
    const float* const x = matrix.values + column * matrix.column_stride;
    for (std::int64_t vector = 0; vector < vectors.count; ++vector) {
      const double* const weight = vectors.of(vector);
      double sums[4] = {};  // side by side
      std::int64_t row = 0;
      for (; row + 4 <= matrix.rows; row += 4) {
        for (std::int64_t i = 0; i < 4; ++i) {
          sums[i] += weight[row + i] * of_element(x[row + i]);
        }
      }
      for (; row < matrix.rows; ++row) {
        sums[0] += weight[row] * of_element(x[row]);
      }
      result.of(vector)[column] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
  }
  return result;
}

double largest_number(DType dtype) {
  return dtype == DType::f16 ? 65504.0 : std::numeric_limits<float>::max();
}

/// Whether a number that is not finite is only too large for how it is stored.
bool overflows(const HostMatmul& product, std::int64_t row, std::int64_t column) {
  const auto at = [](std::span<const float> values, std::int64_t i) {
    return values.empty() ? 0.0 : values[i];
  };
  double value = at(product.bias, column) + at(product.row_bias, row);
  value += product.before ? (*product.before)(row, column) : 0.0;
  for (std::int64_t k = 0; k < product.a.columns; ++k) {
    value += product.a(row, k) * product.b(k, column);
  }
  return !(std::fabs(value) < largest_number(product.stored) * (1 - roundoff(product.stored)));
}

bool only_overflows(const HostMatmul& product, std::int64_t column) {
  const HostMatrix& c = product.c;
  for (std::int64_t row = 0; row < c.rows; ++row) {
    if (!std::isfinite(c(row, column)) && !overflows(product, row, column)) {
      return false;
    }
  }
  return true;
}

/// What the sums of each column have to be, per vector.
/// @param s  vectors of signs, or unit vectors
Vectors expected_sums(const HostMatmul& product, const Vectors& s) {
  Vectors sums = times<same>(times<same>(s, product.a), product.b);
  std::optional<Vectors> before;
  if (product.before) {
    before = times<same>(s, *product.before);
  }
  for (std::int64_t vector = 0; vector < s.count; ++vector) {
    double of_rows = 0;
    double rows = 0;
    for (std::int64_t row = 0; row < s.rows; ++row) {
      rows += s.at(vector, row);
      of_rows += product.row_bias.empty() ? 0.0 : s.at(vector, row) * product.row_bias[row];
    }
    for (std::int64_t column = 0; column < product.c.columns; ++column) {
      const double bias = product.bias.empty() ? 0.0 : product.bias[column];
      sums.of(vector)[column] += rows * bias + of_rows + (before ? before->at(vector, column) : 0);
    }
  }
  return sums;
}

/// How far rounding takes them.
/// @param s2  the squares of the vectors: one for all signs
Vectors units_of_sums(const HostMatmul& product, const Vectors& s2) {
  const Vectors terms2 = times<square>(times<square>(s2, product.a), product.b);
  const Vectors c2 = times<square>(s2, product.c);
  std::optional<Vectors> before2;
  if (product.before) {
    before2 = times<square>(s2, *product.before);
  }
  Vectors units = zeros(s2.count, product.c.columns);
  const double u = roundoff(product.stored);
  const double root_k = std::sqrt(product.a.columns);
  for (std::int64_t vector = 0; vector < s2.count; ++vector) {
    double of_rows2 = 0;
    double rows2 = 0;
    for (std::int64_t row = 0; row < s2.rows; ++row) {
      rows2 += s2.at(vector, row);
      of_rows2 +=
          product.row_bias.empty() ? 0.0 : s2.at(vector, row) * square(product.row_bias[row]);
    }
    const double least = underflow(product.stored) * std::sqrt(rows2);
    for (std::int64_t column = 0; column < product.c.columns; ++column) {
      const double bias = product.bias.empty() ? 0.0 : product.bias[column];
      const double size = std::sqrt(c2.at(vector, column));
      const double size_before = before2 ? std::sqrt(before2->at(vector, column)) : 0;
      const double terms = std::sqrt(terms2.at(vector, column) + rows2 * square(bias) + of_rows2);
      units.of(vector)[column] = u * size + single * root_k * (terms + size + size_before) + least;
    }
  }
  return units;
}

Departure check_columns(const HostMatmul& product, PhiloxKey key, const char* name) {
  constexpr std::int64_t few = 8;
  const std::int64_t rows = product.c.rows;
  const bool are_signs = rows > few;
  const Vectors s =
      are_signs ? random_signs(4, rows, key) : unit_vectors(random_rows(few, rows, key), rows);
  Vectors ones = zeros(1, rows);
  std::ranges::fill(ones.values, 1);
  const Vectors expected = expected_sums(product, s);
  const Vectors units = units_of_sums(product, are_signs ? ones : s);
  const Vectors made = times<same>(s, product.c);
  Departure worst;
  for (std::int64_t column = 0; column < product.c.columns; ++column) {
    for (std::int64_t vector = 0; vector < s.count; ++vector) {
      const double wanted = expected.at(vector, column);
      const double sum = made.at(vector, column);
      if (!std::isfinite(wanted) || (!std::isfinite(sum) && only_overflows(product, column))) {
        continue;  // the operands say nothing, or storage cannot hold it
      }
      const double unit = units.at(are_signs ? 0 : vector, column);
      worst.take(ratio(std::fabs(sum - wanted), unit),
                 [&] { return fmt::format("{} {}", name, column); });
    }
  }
  return worst;
}

}  // namespace

double roundoff(DType dtype) {
  return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : single;
}

double underflow(DType dtype) {
  return dtype == DType::f16 ? 0x1p-25 : 0x1p-126;
}

HostMatmul HostMatmul::transposed() const {
  return {.a = b.transposed(),
          .b = a.transposed(),
          .c = c.transposed(),
          .stored = stored,
          .bias = row_bias,
          .before = before ? std::optional(before->transposed()) : std::nullopt,
          .row_bias = bias};
}

Departure check_sums(const HostMatmul& product, PhiloxKey key) {
  FOURFOLD_EXPECT(product.a.columns == product.b.rows);
  FOURFOLD_EXPECT(product.c.rows == product.a.rows && product.c.columns == product.b.columns);
  Departure worst = check_columns(product, key, "column");
  worst.take(check_columns(product.transposed(), {key.low, ~key.high}, "row"));
  return worst;
}

Departure check_gelu_gradient(const HostMatmul& product, const HostMatrix& pre, PhiloxKey key) {
  const std::vector<std::int64_t> rows = random_rows(64, product.c.rows, key);
  const Vectors s = unit_vectors(rows, product.c.rows);
  const Vectors products = times<same>(times<same>(s, product.a), product.b);
  const Vectors terms2 = times<square>(times<square>(s, product.a), product.b);
  const double u = roundoff(product.stored);
  const double root_k = std::sqrt(product.a.columns);
  const std::size_t columns = product.c.columns;
  std::vector<float> slope(columns);
  const std::vector<float> ones(columns, 1);
  const Shape shape{product.c.columns};
  Departure worst;
  for (std::int64_t i = 0; i < s.count; ++i) {
    const std::int64_t row = rows[i];
    const float* const x = pre.values + row * pre.row_stride;
    kernels::reference::activate_backward(kernels::Activation::gelu_tanh, {ones.data(), shape},
                                          {x, shape}, {slope.data(), shape}, {});
    for (std::int64_t column = 0; column < product.c.columns; ++column) {
      const double g = slope[column];
      const double d = products.at(i, column);
      const double made = product.c(row, column);
      const double expected = d * g;
      if (!std::isfinite(expected) ||
          std::max(std::fabs(d), std::fabs(expected)) > largest_number(product.stored) / 2) {
        continue;  // f16 may hold neither it nor the product
      }
      // tanh, and 1 - tanh^2 beside x (1 + 0.134 x^2): as f32 has them
      const double size = std::min(std::fabs(x[column]), 10.0F);
      const double slope_off = 4 * single * (1 + size * (1 + 0.134 * square(size)));
      const double unit =
          2 * u * std::fabs(made) +
          std::fabs(g) * single * root_k * (std::sqrt(terms2.at(i, column)) + std::fabs(d)) +
          std::fabs(d) * slope_off + 2 * underflow(product.stored);
      worst.take(ratio(std::fabs(made - expected), unit),
                 [&] { return fmt::format("element [{}, {}]", row, column); });
    }
  }
  return worst;
}

Departure check_gelu(const HostMatrix& pre, const HostMatrix& y, DType stored) {
  const std::size_t columns = pre.columns;
  std::vector<float> expected(columns);
  const double u = roundoff(stored);
  const Shape shape{pre.columns};
  Departure worst;
  for (std::int64_t row = 0; row < pre.rows; ++row) {
    const float* const x = pre.values + row * pre.row_stride;
    kernels::reference::activate(kernels::Activation::gelu_tanh, {x, shape},
                                 {expected.data(), shape}, {});
    for (std::int64_t column = 0; column < pre.columns; ++column) {
      const double wanted = expected[column];
      if (!std::isfinite(wanted)) {
        continue;
      }
      const double size = std::fabs(x[column]);
      const double unit =
          u * (std::fabs(wanted) + 1.13 * size) + 2 * single * size + underflow(stored);
      worst.take(ratio(std::fabs(y(row, column) - wanted), unit),
                 [&] { return fmt::format("element [{}, {}] of the activation", row, column); });
    }
  }
  return worst;
}

Departure check_column_sums(const HostMatrix& matrix, std::span<const float> before,
                            std::span<const float> sums) {
  Vectors ones = zeros(1, matrix.rows);
  std::ranges::fill(ones.values, 1);
  const Vectors added = times<same>(ones, matrix);
  const Vectors norms2 = times<square>(ones, matrix);
  const double root = std::sqrt(matrix.rows);
  Departure worst;
  for (std::int64_t column = 0; column < matrix.columns; ++column) {
    const std::size_t i = column;
    const double sum = added.at(0, column);
    const double expected = before[i] + sum;
    if (!std::isfinite(expected)) {
      continue;
    }
    const double unit = single * (root * (std::sqrt(norms2.at(0, column)) + std::fabs(sum)) +
                                  std::fabs(before[i])) +
                        underflow(DType::f32);
    worst.take(ratio(std::fabs(sums[i] - expected), unit),
               [&] { return fmt::format("bias gradient {}", column); });
  }
  return worst;
}

}  // namespace fourfold::train
