// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "gemm.hpp"
#include "vectors/storage.hpp"

#include <fourfold/base/box.hpp>
#include <fourfold/base/contract.hpp>

#include <algorithm>
#include <vector>

namespace fourfold::kernels {
namespace {

/// Edge of a block: a product of three such blocks takes 2 * 1024 operations for each widened
/// number, so that widening costs a few percent, and the three fit the third-level cache.
constexpr std::int64_t block = 1024;

void widen_row(const BFloat16* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = to_float(from[i]);
  }
}
void widen_row(const Float16* from, std::int64_t count, float* to) {
  std::int64_t i = 0;
  for (; i + float16_run <= count; i += float16_run) {
    widen_run(from + i, to + i);
  }
  for (; i < count; ++i) {
    to[i] = to_float(from[i]);
  }
}

/// A block of a 16-bit matrix in f32, densely stored the way the matrix is (transposed or not).
class WidenedBlock {
 public:
  /// Rows and columns are those of the stored matrix. Does nothing when that block is here already.
  template <class T>
  const float* load(const T* matrix, std::int64_t stride, std::int64_t first_row, std::int64_t rows,
                    std::int64_t first_column, std::int64_t columns) {
    if (first_row == first_row_ && first_column == first_column_) {
      return data_.data();
    }
    data_.resize(block * block);
    float* target = data_.data();
#pragma omp parallel for schedule(static)
    for (std::int64_t r = 0; r < rows; ++r) {
      widen_row(matrix + (first_row + r) * stride + first_column, columns, target + r * columns);
    }
    first_row_ = first_row;
    first_column_ = first_column;
    return target;
  }

  void forget() {
    first_row_ = -1;
    first_column_ = -1;
  }

 private:
  std::vector<float> data_;
  std::int64_t first_row_ = -1;
  std::int64_t first_column_ = -1;
};

/// One thread's blocks: allocated by its first product.
struct Scratch {
  WidenedBlock a;
  WidenedBlock b;
  std::vector<float> sum;
};

/// Length of the parts when `total` is cut as evenly as possible into parts of at most one block,
/// in whole registers.
std::int64_t part_length(std::int64_t total) {
  const std::int64_t parts = (total + block - 1) / block;
  return (total + parts * 16 - 1) / (parts * 16) * 16;
}

/// sum (+)= op(a) op(b) over all of k, for one tile of c; rows of `sum` are sum_row apart.
template <class T>
void multiply_tile(const Gemm& p, Range rows, Range columns, Scratch& scratch, float* sum,
                   std::int64_t sum_row, Write write) {
  const auto* a = static_cast<const T*>(p.a);
  const auto* b = static_cast<const T*>(p.b);
  const std::int64_t step = part_length(p.k);
  for (std::int64_t k0 = 0; k0 < p.k; k0 += step) {
    const std::int64_t depth = std::min(step, p.k - k0);
    const float* a_block = p.a_transposed
                               ? scratch.a.load(a, p.a_row, k0, depth, rows.begin, rows.count)
                               : scratch.a.load(a, p.a_row, rows.begin, rows.count, k0, depth);
    const float* b_block = p.b_transposed
                               ? scratch.b.load(b, p.k, columns.begin, columns.count, k0, depth)
                               : scratch.b.load(b, p.n, k0, depth, columns.begin, columns.count);
    f32_product({.m = rows.count,
                 .n = columns.count,
                 .k = depth,
                 .a = a_block,
                 .a_transposed = p.a_transposed,
                 .a_row = p.a_transposed ? rows.count : depth,
                 .b = b_block,
                 .b_transposed = p.b_transposed,
                 .c = sum,
                 .c_row = sum_row,
                 .write = k0 == 0 ? write : Write::accumulate});
  }
}

/// c = sum (+ bias), or c += sum, rounded to T, for one tile of c.
template <class T>
void write_tile(const Gemm& p, Range rows, Range columns, const float* sum) {
  const auto* bias = static_cast<const T*>(p.bias_N);
  const bool accumulate = p.write == Write::accumulate;
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const float* source = sum + r * columns.count;
    T* target = static_cast<T*>(p.c) + (rows.begin + r) * p.c_row + columns.begin;
    if (accumulate) {
      for (std::int64_t c = 0; c < columns.count; ++c) {
        store(target[c], to_float(target[c]) + source[c]);
      }
    } else if (bias != nullptr) {
      for (std::int64_t c = 0; c < columns.count; ++c) {
        store(target[c], source[c] + to_float(bias[columns.begin + c]));
      }
    } else {
      for (std::int64_t c = 0; c < columns.count; ++c) {
        store(target[c], source[c]);
      }
    }
  }
}

template <class T>
void multiply(const Gemm& p, Scratch& scratch) {
  const std::int64_t rows = part_length(p.m);
  const std::int64_t columns = part_length(p.n);
  // With a short k, the block of b stays for all rows.
  for (std::int64_t column = 0; column < p.n; column += columns) {
    for (std::int64_t row = 0; row < p.m; row += rows) {
      const Range tile_rows{row, std::min(rows, p.m - row)};
      const Range tile_columns{column, std::min(columns, p.n - column)};
      if (p.c_dtype == DType::f32) {
        multiply_tile<T>(p, tile_rows, tile_columns, scratch,
                         static_cast<float*>(p.c) + row * p.c_row + column, p.c_row, p.write);
      } else {
        multiply_tile<T>(p, tile_rows, tile_columns, scratch, scratch.sum.data(),
                         tile_columns.count, Write::replace);
        write_tile<T>(p, tile_rows, tile_columns, scratch.sum.data());
      }
    }
  }
}

}  // namespace

void widened_product(DType dtype, const Gemm& p) {
  FOURFOLD_EXPECT(dtype == DType::bf16 || dtype == DType::f16);
  FOURFOLD_EXPECT(p.c_row >= p.n && (p.c_dtype == DType::f32 || p.c_dtype == dtype));
  FOURFOLD_EXPECT(p.a_row >= (p.a_transposed ? p.m : p.k));
  FOURFOLD_EXPECT(p.bias_N == nullptr || p.c_dtype == dtype);
  thread_local Scratch scratch;
  scratch.a.forget();
  scratch.b.forget();
  scratch.sum.resize(block * block);
  if (dtype == DType::bf16) {
    multiply<BFloat16>(p, scratch);
  } else {
    multiply<Float16>(p, scratch);
  }
}

}  // namespace fourfold::kernels
