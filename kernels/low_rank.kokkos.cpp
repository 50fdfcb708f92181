// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "lanes.hpp"
#include "launch.hpp"
#include "scratch.hpp"

#include <fourfold/kernels/low_rank.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>

namespace fourfold::kernels {
namespace {

/// Part of the numbers: another value rounds differently.
constexpr std::int64_t elements_per_partial = 16384;

/// Sums of products of a row with itself and those before it, in blocks.
struct PartialDots {
  const float* x;
  std::int64_t columns;
  std::int64_t row;
  std::int64_t blocks;
  double* partial;  ///< [other row][block]

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t other = index / blocks;
    const std::int64_t begin = index % blocks * elements_per_partial;
    const std::int64_t left = columns - begin;
    const std::int64_t count = left < elements_per_partial ? left : elements_per_partial;
    const float* const a = x + row * columns + begin;
    const float* const b = x + other * columns + begin;
    double sum[lanes] = {};
    std::int64_t first = 0;
    for (; first + lanes <= count; first += lanes) {
#pragma omp simd
      for (int i = 0; i < lanes; ++i) {
        sum[i] += static_cast<double>(a[first + i]) * static_cast<double>(b[first + i]);
      }
    }
    for (int i = 0; first + i < count; ++i) {
      sum[i] += static_cast<double>(a[first + i]) * static_cast<double>(b[first + i]);
    }
    partial[index] = fold_sum(sum);
  }
};

struct CombineDots {
  const double* partial;
  std::int64_t blocks;
  double* dots;

  KOKKOS_FUNCTION void operator()(std::int64_t other) const {
    double total = 0;
    for (std::int64_t block = 0; block < blocks; ++block) {
      total += partial[other * blocks + block];
    }
    dots[other] = total;
  }
};

/// Takes the parts along the rows before out of a row.
struct Project {
  float* x;
  std::int64_t columns;
  std::int64_t row;
  const double* dots;

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    float* const mine = x + row * columns;
    for (std::int64_t i = begin; i < end; ++i) {
      auto value = static_cast<double>(mine[i]);
      for (std::int64_t other = 0; other < row; ++other) {
        value -= dots[other] * static_cast<double>(x[other * columns + i]);
      }
      mine[i] = static_cast<float>(value);
    }
  }
};

struct Normalise {
  float* row;
  const double* before;
  const double* after;

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    const double factor = *after <= 1e-12 * *before ? 0.0 : 1.0 / std::sqrt(*after);
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      row[i] = static_cast<float>(static_cast<double>(row[i]) * factor);
    }
  }
};

/// Where the sums of orthonormalise_rows() lie.
struct Sums {
  double* before;   ///< [row]: with itself and those before it, as it comes
  double* between;  ///< [row]: after the first pass
  double* after;    ///< [row]: after the second
  double* partial;
};

/// Of row `row` with rows [0, row].
void dots_of(TensorView x_RN, std::int64_t row, double* partial, double* dots,
             device::StreamRef stream) {
  const std::int64_t columns = x_RN.dim(1);
  const std::int64_t blocks = (columns + elements_per_partial - 1) / elements_per_partial;
  for_each("partial_dots", (row + 1) * blocks, stream,
           PartialDots{x_RN.as<float>(), columns, row, blocks, partial});
  for_each("combine_dots", row + 1, stream, CombineDots{partial, blocks, dots});
}

/// One element of a^T b and `factor` make an element of y.
template <bool remainder>
struct LowRankRow {
  const float* a;
  const float* b;
  float factor;
  float* y;
  std::int64_t rank;
  std::int64_t rows;
  std::int64_t columns;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    float* const mine = y + row * columns;
    for (std::int64_t first = 0; first < columns; first += lanes) {
      const std::int64_t left = columns - first;
      const int count = left < lanes ? static_cast<int>(left) : lanes;
      float sum[lanes] = {};
      for (std::int64_t r = 0; r < rank; ++r) {
        const float coefficient = a[r * rows + row];
        const float* const from = b + r * columns + first;
#pragma omp simd
        for (int i = 0; i < count; ++i) {
          sum[i] += coefficient * from[i];
        }
      }
#pragma omp simd
      for (int i = 0; i < count; ++i) {
        mine[first + i] = remainder ? factor * (mine[first + i] - sum[i]) : sum[i];
      }
    }
  }
};

template <bool remainder>
void for_rows(const char* label, ConstTensorView a_RN, ConstTensorView b_RM, float factor,
              TensorView y_NM, device::StreamRef stream) {
  FOURFOLD_EXPECT(a_RN.dim(0) == b_RM.dim(0));
  FOURFOLD_EXPECT(a_RN.dim(1) == y_NM.dim(0) && b_RM.dim(1) == y_NM.dim(1));
  for_each(label, y_NM.dim(0), stream,
           LowRankRow<remainder>{a_RN.as<float>(), b_RM.as<float>(), factor, y_NM.as<float>(),
                                 a_RN.dim(0), y_NM.dim(0), y_NM.dim(1)});
}

struct ReplaceZeroRow {
  const float* other;
  float* x;
  std::int64_t columns;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    float* const mine = x + row * columns;
    bool zero = true;
    for (std::int64_t i = 0; i < columns && zero; ++i) {
      zero = mine[i] == 0;
    }
    for (std::int64_t i = 0; i < columns && zero; ++i) {
      mine[i] = other[row * columns + i];
    }
  }
};

}  // namespace

void orthonormalise_rows(TensorView x_RN, device::StreamRef stream) {
  const std::int64_t rows = x_RN.dim(0);
  const std::int64_t columns = x_RN.dim(1);
  const std::int64_t blocks = (columns + elements_per_partial - 1) / elements_per_partial;
  auto* const memory = static_cast<double*>(
      scratch(static_cast<std::size_t>(rows * (blocks + 3)) * sizeof(double), stream));
  const Sums sums{memory, memory + rows, memory + 2 * rows, memory + 3 * rows};
  float* const x = x_RN.as<float>();
  for (std::int64_t row = 0; row < rows; ++row) {
    dots_of(x_RN, row, sums.partial, sums.before, stream);
    for_each_block("project", columns, stream, Project{x, columns, row, sums.before});
    dots_of(x_RN, row, sums.partial, sums.between, stream);
    for_each_block("project", columns, stream, Project{x, columns, row, sums.between});
    dots_of(x_RN, row, sums.partial, sums.after, stream);
    for_each_block("normalise", columns, stream,
                   Normalise{x + row * columns, sums.before + row, sums.after + row});
  }
}

void low_rank_product(ConstTensorView a_RN, ConstTensorView b_RM, TensorView y_NM,
                      device::StreamRef stream) {
  for_rows<false>("low_rank_product", a_RN, b_RM, 1.0F, y_NM, stream);
}

void low_rank_remainder(ConstTensorView a_RN, ConstTensorView b_RM, float factor, TensorView y_NM,
                        device::StreamRef stream) {
  for_rows<true>("low_rank_remainder", a_RN, b_RM, factor, y_NM, stream);
}

void replace_zero_rows(ConstTensorView other_RM, TensorView x_RM, device::StreamRef stream) {
  FOURFOLD_EXPECT(other_RM.elements() == x_RM.elements());
  for_each("replace_zero_rows", x_RM.dim(0), stream,
           ReplaceZeroRow{other_RM.as<float>(), x_RM.as<float>(), x_RM.dim(1)});
}

}  // namespace fourfold::kernels
