// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "product_sums.hpp"

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

double square(double x) {
  return x * x;
}

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
  return {count, rows, std::vector<double>(static_cast<std::size_t>(count * rows))};
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
    const PhiloxBlock random = philox(key, static_cast<std::uint64_t>(row));
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
  return dtype == DType::f16 ? 65504.0 : static_cast<double>(std::numeric_limits<float>::max());
}

/// A product and what is added to all elements of a row (M numbers, or none): a bias, once the
/// product is transposed.
struct Turned {
  HostProduct product;
  std::span<const float> row_bias;
};

/// Whether a number that is not finite is only too large for how it is stored.
bool overflows(const Turned& turned, std::int64_t row, std::int64_t column) {
  const HostProduct& product = turned.product;
  const auto at = [](std::span<const float> values, std::int64_t i) {
    return values.empty() ? 0.0 : static_cast<double>(values[i]);
  };
  double value = at(product.bias, column) + at(turned.row_bias, row);
  value += product.before ? (*product.before)(row, column) : 0.0;
  for (std::int64_t k = 0; k < product.a.columns; ++k) {
    value += product.a(row, k) * product.b(k, column);
  }
  return !(std::fabs(value) < largest_number(product.stored) * (1 - roundoff(product.stored)));
}

bool only_overflows(const Turned& turned, std::int64_t column) {
  const HostMatrix& c = turned.product.c;
  for (std::int64_t row = 0; row < c.rows; ++row) {
    if (!std::isfinite(c(row, column)) && !overflows(turned, row, column)) {
      return false;
    }
  }
  return true;
}

/// What the sums of one column have to be, and how far rounding takes them: per vector.
struct Expected {
  Vectors sums;
  Vectors units;
};

/// @param s   vectors of signs, or unit vectors. @param s2  their squares: one for all signs
Expected expect_sums(const Turned& turned, const Vectors& s, const Vectors& s2) {
  const HostProduct& product = turned.product;
  Vectors sums = times<same>(times<same>(s, product.a), product.b);
  const Vectors terms2 = times<square>(times<square>(s2, product.a), product.b);
  const Vectors c2 = times<square>(s2, product.c);
  std::optional<Vectors> before;
  std::optional<Vectors> before2;
  if (product.before) {
    before = times<same>(s, *product.before);
    before2 = times<square>(s2, *product.before);
  }
  Vectors units = zeros(s.count, product.c.columns);
  const double u = roundoff(product.stored);
  const double root_k = std::sqrt(static_cast<double>(product.a.columns));
  for (std::int64_t vector = 0; vector < s.count; ++vector) {
    const std::int64_t group = s2.count == 1 ? 0 : vector;
    double of_rows = 0;
    double of_rows2 = 0;
    double rows = 0;
    double rows2 = 0;
    for (std::int64_t row = 0; row < s.rows; ++row) {
      rows += s.at(vector, row);
      rows2 += s2.at(group, row);
      if (!turned.row_bias.empty()) {
        const double bias = turned.row_bias[row];
        of_rows += s.at(vector, row) * bias;
        of_rows2 += s2.at(group, row) * square(bias);
      }
    }
    const double least = underflow(product.stored) * std::sqrt(rows2);
    for (std::int64_t column = 0; column < product.c.columns; ++column) {
      const double bias = product.bias.empty() ? 0.0 : product.bias[column];
      const double size = std::sqrt(c2.at(group, column));
      const double size_before = before2 ? std::sqrt(before2->at(group, column)) : 0;
      const double terms = std::sqrt(terms2.at(group, column) + rows2 * square(bias) + of_rows2);
      sums.of(vector)[column] += rows * bias + of_rows + (before ? before->at(vector, column) : 0);
      units.of(vector)[column] = u * size + single * root_k * (terms + size + size_before) + least;
    }
  }
  return {std::move(sums), std::move(units)};
}

Departure check_columns(const Turned& turned, PhiloxKey key, const char* name) {
  constexpr std::int64_t few = 8;
  const HostProduct& product = turned.product;
  const std::int64_t rows = product.c.rows;
  const bool are_signs = rows > few;
  const Vectors s =
      are_signs ? random_signs(4, rows, key) : unit_vectors(random_rows(few, rows, key), rows);
  Vectors ones = zeros(1, rows);
  std::ranges::fill(ones.values, 1);
  const Expected expected = expect_sums(turned, s, are_signs ? ones : s);
  const Vectors made = times<same>(s, product.c);
  Departure worst;
  for (std::int64_t column = 0; column < product.c.columns; ++column) {
    for (std::int64_t vector = 0; vector < s.count; ++vector) {
      const double wanted = expected.sums.at(vector, column);
      const double sum = made.at(vector, column);
      if (!std::isfinite(wanted) || (!std::isfinite(sum) && only_overflows(turned, column))) {
        continue;  // the operands say nothing, or storage cannot hold it
      }
      const double error = ratio(std::fabs(sum - wanted), expected.units.at(vector, column));
      if (error > worst.error) {
        worst = {error, fmt::format("{} {}", name, column)};
      }
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

Departure check_sums(const HostProduct& product, PhiloxKey key) {
  FOURFOLD_EXPECT(product.a.columns == product.b.rows);
  FOURFOLD_EXPECT(product.c.rows == product.a.rows && product.c.columns == product.b.columns);
  const HostProduct turned{
      .a = product.b.transposed(),
      .b = product.a.transposed(),
      .c = product.c.transposed(),
      .stored = product.stored,
      .bias = {},
      .before = product.before ? std::optional(product.before->transposed()) : std::nullopt};
  Departure worst = check_columns({product, {}}, key, "column");
  worst.take(check_columns({turned, product.bias}, {key.low, ~key.high}, "row"));
  return worst;
}

Departure check_gelu_gradient(const HostProduct& product, const HostMatrix& pre, PhiloxKey key) {
  const std::vector<std::int64_t> rows = random_rows(64, product.c.rows, key);
  const Vectors s = unit_vectors(rows, product.c.rows);
  const Vectors products = times<same>(times<same>(s, product.a), product.b);
  const Vectors terms2 = times<square>(times<square>(s, product.a), product.b);
  const double u = roundoff(product.stored);
  const double root_k = std::sqrt(static_cast<double>(product.a.columns));
  const std::size_t columns = product.c.columns;
  std::vector<float> x(columns);
  std::vector<float> slope(columns);
  const std::vector<float> ones(columns, 1);
  const Shape shape{product.c.columns};
  Departure worst;
  for (std::int64_t i = 0; i < s.count; ++i) {
    const std::int64_t row = rows[i];
    for (std::size_t column = 0; column < columns; ++column) {
      x[column] = static_cast<float>(pre(row, static_cast<std::int64_t>(column)));
    }
    kernels::reference::gelu_backward({ones.data(), shape}, {x.data(), shape},
                                      {slope.data(), shape}, {});
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
      const double error = ratio(std::fabs(made - expected), unit);
      if (error > worst.error) {
        worst = {error, fmt::format("element [{}, {}]", row, column)};
      }
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
    kernels::reference::gelu({x, shape}, {expected.data(), shape}, {});
    for (std::int64_t column = 0; column < pre.columns; ++column) {
      const double wanted = expected[column];
      if (!std::isfinite(wanted)) {
        continue;
      }
      const double size = std::fabs(x[column]);
      const double unit =
          u * (std::fabs(wanted) + 1.13 * size) + 2 * single * size + underflow(stored);
      const double error = ratio(std::fabs(y(row, column) - wanted), unit);
      if (error > worst.error) {
        worst = {error, fmt::format("element [{}, {}] of the activation", row, column)};
      }
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
  const double root = std::sqrt(static_cast<double>(matrix.rows));
  Departure worst;
  for (std::int64_t column = 0; column < matrix.columns; ++column) {
    const std::size_t i = column;
    const double sum = added.at(0, column);
    const double expected = before[i] + sum;
    if (!std::isfinite(expected)) {
      continue;
    }
    const double unit = single * (root * (std::sqrt(norms2.at(0, column)) + std::fabs(sum)) +
                                  std::fabs(static_cast<double>(before[i]))) +
                        underflow(DType::f32);
    const double error = ratio(std::fabs(sums[i] - expected), unit);
    if (error > worst.error) {
      worst = {error, fmt::format("bias gradient {}", column)};
    }
  }
  return worst;
}

}  // namespace fourfold::train
