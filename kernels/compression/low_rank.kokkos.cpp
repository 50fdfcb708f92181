// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/scratch.hpp"
#include "vectors/for_each_pack.hpp"
#include "vectors/lanes.hpp"

#include <fourfold/kernels/compression.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>

namespace fourfold::kernels {
namespace {

/// Part of the numbers: another value rounds differently.
constexpr std::int64_t elements_per_partial = is_for_device ? 256 : 16384;

constexpr int pack = pack_elements<float>;

/// In f64, where it is exact.
KOKKOS_FORCEINLINE_FUNCTION double product(double a, double b) {
  return a * b;
}

/// Sums of products of a row with itself and those before it: in blocks, then of all blocks.
struct Dots {
  struct SumBlock {};
  struct CombineBlocks {};

  const float* x;
  std::int64_t columns;
  std::int64_t row;
  std::int64_t blocks;
  double* partial;  ///< [other row][block]
  double* dots;     ///< [other row]

  KOKKOS_FUNCTION void operator()(SumBlock /*step*/, std::int64_t index) const {
    const std::int64_t other = index / blocks;
    const std::int64_t begin = index % blocks * elements_per_partial;
    const std::int64_t left = columns - begin;
    const std::int64_t count = left < elements_per_partial ? left : elements_per_partial;
    const float* const a = x + row * columns + begin;
    const float* const b = x + other * columns + begin;
    if constexpr (is_for_device) {
      double sum = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        sum += product(a[i], b[i]);
      }
      partial[index] = sum;
      return;
    }
    double sum[lanes] = {};
    std::int64_t first = 0;
    for (; first + lanes <= count; first += lanes) {
#pragma omp simd
      for (int i = 0; i < lanes; ++i) {
        sum[i] += product(a[first + i], b[first + i]);
      }
    }
    for (int i = 0; first + i < count; ++i) {
      sum[i] += product(a[first + i], b[first + i]);
    }
    partial[index] = fold_sum(sum);
  }

  KOKKOS_FUNCTION void operator()(CombineBlocks /*step*/, std::int64_t other) const {
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
      double value = mine[i];
      for (std::int64_t other = 0; other < row; ++other) {
        value -= dots[other] * x[other * columns + i];
      }
      mine[i] = static_cast<float>(value);
    }
  }
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    float* const mine = x + row * columns + first;
    float y[n];
    double value[n];
    load<n>(mine, y);
    for (int i = 0; i < n; ++i) {
      value[i] = y[i];
    }
    for (std::int64_t other = 0; other < row; ++other) {
      load<n>(x + other * columns + first, y);
      for (int i = 0; i < n; ++i) {
        value[i] -= dots[other] * y[i];
      }
    }
    for (int i = 0; i < n; ++i) {
      y[i] = static_cast<float>(value[i]);
    }
    save<n>(mine, y);
  }
};

struct Normalise {
  float* row;
  const double* before;
  const double* after;

  /// Zero where nothing but rounding is left of the row.
  KOKKOS_FORCEINLINE_FUNCTION double factor_of_row() const {
    return *after <= 1e-12 * *before ? 0.0 : 1.0 / std::sqrt(*after);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    const double factor = factor_of_row();
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      row[i] = static_cast<float>(row[i] * factor);
    }
  }
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    const double factor = factor_of_row();
    float y[n];
    load<n>(row + first, y);
    for (float& each : y) {
      each = static_cast<float>(each * factor);
    }
    save<n>(row + first, y);
  }
};

/// Of row `row` with rows [0, row].
void dots_of(TensorView x_RN, std::int64_t row, double* partial, double* dots,
             device::StreamRef stream) {
  const std::int64_t columns = x_RN.dim(1);
  const std::int64_t blocks = (columns + elements_per_partial - 1) / elements_per_partial;
  const Dots of_row{x_RN.as<float>(), columns, row, blocks, partial, dots};
  for_each<Dots::SumBlock>("partial_dots", (row + 1) * blocks, stream, of_row);
  for_each<Dots::CombineBlocks>("combine_dots", row + 1, stream, of_row);
}

/// body over the elements of one row, and of the same columns of those before it.
template <class Body>
void for_row(const char* label, TensorView x_RN, std::int64_t row, device::StreamRef stream,
             const Body& body) {
  const std::int64_t columns = x_RN.dim(1);
  const bool aligned = (row == 0 || columns % pack == 0) &&
                       at_packs<pack>(x_RN.as<float>(), x_RN.as<float>() + row * columns);
  for_each_pack<pack>(label, columns, aligned, MemorySpace::device, stream, body);
}

/// One element of a^T b and `factor` make an element of y: a row at a time on a host, n neighbours
/// in it on a device.
template <bool remainder>
struct LowRankElements {
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
      const std::int64_t count = left < lanes ? left : lanes;
      float sum[lanes] = {};
      for (std::int64_t r = 0; r < rank; ++r) {
        const float coefficient = a[r * rows + row];
        const float* const from = b + r * columns + first;
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i) {
          sum[i] += coefficient * from[i];
        }
      }
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) {
        mine[first + i] = remainder ? factor * (mine[first + i] - sum[i]) : sum[i];
      }
    }
  }

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t row, std::int64_t column,
                                              Count<n> /*count*/) const {
    float* const mine = y + row * columns + column;
    float sum[n] = {};
    float x[n];
    for (std::int64_t r = 0; r < rank; ++r) {
      const float coefficient = a[r * rows + row];
      load<n>(b + r * columns + column, x);
      for (int i = 0; i < n; ++i) {
        sum[i] += coefficient * x[i];
      }
    }
    if constexpr (remainder) {
      load<n>(mine, x);
      for (int i = 0; i < n; ++i) {
        sum[i] = factor * (x[i] - sum[i]);
      }
    }
    save<n>(mine, sum);
  }
};

template <bool remainder>
void for_rows(const char* label, ConstTensorView a_RN, ConstTensorView b_RM, float factor,
              TensorView y_NM, device::StreamRef stream) {
  FOURFOLD_EXPECT(a_RN.dim(0) == b_RM.dim(0));
  FOURFOLD_EXPECT(a_RN.dim(1) == y_NM.dim(0) && b_RM.dim(1) == y_NM.dim(1));
  const LowRankElements<remainder> body{a_RN.as<float>(), b_RM.as<float>(), factor,
                                        y_NM.as<float>(), a_RN.dim(0),      y_NM.dim(0),
                                        y_NM.dim(1)};
  for_each_pack_of_rows<pack>(label, body.rows, body.columns, at_packs<pack>(body.b, body.y),
                              stream, body);
}

/// Rows of zeros become those of `other`: at once on a host, in two steps on a device, which finds
/// the rows that are not zero first.
struct ReplaceZeroRows {
  struct ClearFound {};

  const float* other;
  float* x;
  std::int64_t columns;
  std::int32_t* found;  ///< of a device: [row]; all threads that write write 1

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

  KOKKOS_FUNCTION void operator()(ClearFound /*step*/, std::int64_t row) const { found[row] = 0; }

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t row, std::int64_t column,
                                              Count<n> /*count*/) const {
    if (found[row] == 0) {
      float y[n];
      load<n>(other + row * columns + column, y);
      save<n>(x + row * columns + column, y);
    }
  }
};
struct FindNonZeroRows {
  const float* x;
  std::int64_t columns;
  std::int32_t* found;

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t row, std::int64_t column,
                                              Count<n> /*count*/) const {
    float y[n];
    load<n>(x + row * columns + column, y);
    for (const float each : y) {
      if (each != 0) {
        found[row] = 1;
      }
    }
  }
};

}  // namespace

void orthonormalise_rows(TensorView x_RN, device::StreamRef stream) {
  const std::int64_t rows = x_RN.dim(0);
  const std::int64_t columns = x_RN.dim(1);
  const std::int64_t blocks = (columns + elements_per_partial - 1) / elements_per_partial;
  auto* const memory = scratch<double>(rows * (blocks + 3), stream);
  // Of each row, with itself and those before it: as it comes, after the first pass, after the
  // second.
  double* const before = memory;
  double* const between = memory + rows;
  double* const after = memory + 2 * rows;
  double* const partial = memory + 3 * rows;
  float* const x = x_RN.as<float>();
  for (std::int64_t row = 0; row < rows; ++row) {
    dots_of(x_RN, row, partial, before, stream);
    for_row("project", x_RN, row, stream, Project{x, columns, row, before});
    dots_of(x_RN, row, partial, between, stream);
    for_row("project", x_RN, row, stream, Project{x, columns, row, between});
    dots_of(x_RN, row, partial, after, stream);
    for_row("normalise", x_RN, row, stream,
            Normalise{x + row * columns, before + row, after + row});
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
  const std::int64_t rows = x_RM.dim(0);
  const ReplaceZeroRows body{other_RM.as<float>(), x_RM.as<float>(), x_RM.dim(1),
                             is_for_device ? scratch<std::int32_t>(rows, stream) : nullptr};
  const bool aligned = at_packs<pack>(body.other, body.x);
  if constexpr (is_for_device) {
    for_each<ReplaceZeroRows::ClearFound>("clear_found", rows, stream, body);
    for_each_pack_of_rows<pack>("find_non_zero_rows", rows, body.columns, aligned, stream,
                                FindNonZeroRows{body.x, body.columns, body.found});
  }
  for_each_pack_of_rows<pack>("replace_zero_rows", rows, body.columns, aligned, stream, body);
}

}  // namespace fourfold::kernels
