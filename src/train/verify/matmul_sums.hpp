// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Whether a matrix is the product of two others, found out by sums (Huang & Abraham 1984,
/// "Algorithm-based fault tolerance for matrix operations"; Freivalds 1977): with a vector s of
/// signs, s^T C is compared with (s^T A) B, which takes as long as reading the three matrices. In
/// f64, on the host. Legend: C is M x N, A is M x K, B is K x N.
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/base/philox.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::train {

/// Numbers of the host that somebody else owns; strides in elements, one of them 1.
struct HostMatrix {
  const float* values = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;

  double operator()(std::int64_t row, std::int64_t column) const {
    return values[row * row_stride + column * column_stride];
  }
  HostMatrix transposed() const { return {values, columns, rows, column_stride, row_stride}; }
};

/// c = a b + bias, or before + a b. The transposed product has its bias in the rows.
struct HostMatmul {
  HostMatrix a;
  HostMatrix b;
  HostMatrix c;
  DType stored = DType::f32;         ///< what c was rounded to
  std::span<const float> bias = {};  ///< N, or none
  std::optional<HostMatrix> before = {};
  std::span<const float> row_bias = {};  ///< M, or none

  HostMatmul transposed() const;
};

/// How far a result is from what it should be, in units of what rounding makes there.
struct Departure {
  double error = 0;
  std::string place;  ///< where that is the most: "column 5"

  /// Keeps the larger of the two. @param where  makes the words for its place
  template <class Where>
  void take(double other, const Where& where) {
    if (other > error) {
      *this = {other, where()};
    }
  }
  /// Keeps the larger of the two.
  void take(Departure other) {
    if (!(other.error <= error)) {
      *this = std::move(other);
    }
  }
};

/// Unit roundoff: 2^-24 (f32), 2^-11 (f16), 2^-8 (bf16).
double roundoff(DType dtype);
/// What a number near zero is off by: half the smallest one of f16; below 2^-126 f32 and bf16 may
/// be cut off.
double underflow(DType dtype);

/// The largest departure of a column of c, over four vectors s of random signs for the rows, and of
/// a row, over four for the columns. Of up to eight rows (columns) each is looked at by itself.
///
/// The unit of column j is, with u the roundoff of c's type, e = 2^-24 and all norms over the rows,
///     u |C_j| + e sqrt(K) (sqrt(sum_i sum_k (a_ik b_kj)^2) + |C_j| + |C0_j|) + underflow,
/// C0 being what there was before. The first term bounds the rounding of storage: errors of the
/// elements are at most u |c_ij|, and the signs do not know them, so that by Hoeffding's inequality
/// their sum is beyond t u |C_j| with probability 2 exp(-t^2 / 2) at most (t = 8: 3e-14). The
/// second is how rounding adds up in f32 sums of K terms, whether they cancel or not. A column that
/// counts twice is some 1 / u units away: hundreds in bf16, millions in f32.
///
/// What is not finite says nothing where the operands are not finite either, or where c's type
/// cannot hold the result; else it is infinitely far away.
Departure check_sums(const HostMatmul& product, PhiloxKey key);

/// c = (a b) times gelu'(pre), element by element: not linear in b, so at most 64 rows, drawn at
/// random, are made anew. The unit of an element with the product d is
///     2 u |c| + |gelu'| e sqrt(K) (sqrt(sum_k (a_ik b_kj)^2) + |d|) + |d| (rounding of gelu').
Departure check_gelu_gradient(const HostMatmul& product, const HostMatrix& pre, PhiloxKey key);

/// y = gelu(pre), each element. Where a device makes both at once, y is that of pre before it was
/// rounded: the unit is u (|y| + 1.13 |pre|) + 2 e |pre|.
Departure check_gelu(const HostMatrix& pre, const HostMatrix& y, DType stored);

/// sums = before + column sums of the matrix, each. The unit is e (sqrt(rows) (norm of the column +
/// |its sum|) + |before|).
Departure check_column_sums(const HostMatrix& matrix, std::span<const float> before,
                            std::span<const float> sums);

/// At most so many of `rows` rows, in order: all of them, or one drawn from each of `most` equal
/// parts.
inline std::vector<std::int64_t> random_rows(std::int64_t most, std::int64_t rows, PhiloxKey key) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < most && i < rows; ++i) {
    if (rows <= most) {
      result.push_back(i);
      continue;
    }
    const std::int64_t begin = rows * i / most;
    const std::int64_t count = rows * (i + 1) / most - begin;
    const std::uint32_t random = philox(key, i, 1).word[0];
    result.push_back(begin + random % count);
  }
  return result;
}

}  // namespace fourfold::train
