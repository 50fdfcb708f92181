// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/storage.hpp"

#include <fourfold/kernels/compression.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace fourfold::kernels::reference {
namespace {

using Row = std::vector<double>;

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

/// One element of a^T b.
double product_at(ConstTensorView a_RN, ConstTensorView b_RM, std::int64_t n, std::int64_t m) {
  double sum = 0;
  for (std::int64_t r = 0; r < a_RN.dim(0); ++r) {
    sum += read_element(a_RN, r * a_RN.dim(1) + n) * read_element(b_RM, r * b_RM.dim(1) + m);
  }
  return sum;
}

}  // namespace

void orthonormalise_rows(TensorView x_RN, device::StreamRef /*stream*/) {
  std::vector<Row> done;
  for (std::int64_t r = 0; r < x_RN.dim(0); ++r) {
    const float* const memory = x_RN.as<float>() + r * x_RN.dim(1);
    Row row(memory, memory + x_RN.dim(1));
    const double before = dot(row, row);
    for (int pass = 0; pass < 2; ++pass) {
      for (const Row& other : done) {
        const double part = dot(row, other);
        for (std::size_t i = 0; i < row.size(); ++i) {
          row[i] -= part * other[i];
        }
      }
    }
    const double after = dot(row, row);
    const double factor = after <= 1e-12 * before ? 0.0 : 1.0 / std::sqrt(after);
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] *= factor;
      write_element(x_RN, r * x_RN.dim(1) + i, row[i]);
    }
    done.push_back(std::move(row));
  }
}

void low_rank_product(ConstTensorView a_RN, ConstTensorView b_RM, TensorView y_NM,
                      device::StreamRef /*stream*/) {
  for (std::int64_t n = 0; n < y_NM.dim(0); ++n) {
    for (std::int64_t m = 0; m < y_NM.dim(1); ++m) {
      write_element(y_NM, n * y_NM.dim(1) + m, product_at(a_RN, b_RM, n, m));
    }
  }
}

void low_rank_remainder(ConstTensorView a_RN, ConstTensorView b_RM, float factor, TensorView y_NM,
                        device::StreamRef /*stream*/) {
  for (std::int64_t n = 0; n < y_NM.dim(0); ++n) {
    for (std::int64_t m = 0; m < y_NM.dim(1); ++m) {
      const std::int64_t at = n * y_NM.dim(1) + m;
      write_element(y_NM, at, factor * (read_element(y_NM, at) - product_at(a_RN, b_RM, n, m)));
    }
  }
}

void replace_zero_rows(ConstTensorView other_RM, TensorView x_RM, device::StreamRef /*stream*/) {
  const std::int64_t columns = x_RM.dim(1);
  for (std::int64_t r = 0; r < x_RM.dim(0); ++r) {
    float* const row = x_RM.as<float>() + r * columns;
    if (std::all_of(row, row + columns, [](float value) { return value == 0; })) {
      std::copy_n(other_RM.as<float>() + r * columns, columns, row);
    }
  }
}

}  // namespace fourfold::kernels::reference
