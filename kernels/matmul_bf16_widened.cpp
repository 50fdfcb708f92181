// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "product.hpp"

#include <algorithm>
#include <vector>

namespace fourfold::kernels {
namespace {

/// Edge of a block: a product of three such blocks takes 2 * 1024 operations for each widened
/// number, so that widening costs a few percent, and the three fit the third-level cache.
constexpr std::int64_t block = 1024;

/// A block of a bf16 matrix in f32, densely stored the way the matrix is (transposed or not).
class WidenedBlock {
 public:
  /// Rows and columns are those of the stored matrix. Does nothing when that block is here already.
  const float* load(const BFloat16* matrix, std::int64_t stride, std::int64_t first_row,
                    std::int64_t rows, std::int64_t first_column, std::int64_t columns) {
    if (first_row == first_row_ && first_column == first_column_) {
      return data_.data();
    }
    data_.resize(static_cast<std::size_t>(block * block));
    float* target = data_.data();
#pragma omp parallel for schedule(static)
    for (std::int64_t r = 0; r < rows; ++r) {
      const BFloat16* source = matrix + (first_row + r) * stride + first_column;
      for (std::int64_t c = 0; c < columns; ++c) {
        target[r * columns + c] = static_cast<float>(source[c]);
      }
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

struct Tile {
  std::int64_t first_row;
  std::int64_t rows;
  std::int64_t first_column;
  std::int64_t columns;
};

/// sum = op(a) op(b) over all of k, for one tile of c.
void multiply_tile(const Product& p, const Tile& tile, Scratch& scratch) {
  const auto* a = static_cast<const BFloat16*>(p.a);
  const auto* b = static_cast<const BFloat16*>(p.b);
  for (std::int64_t k0 = 0; k0 < p.k; k0 += block) {
    const std::int64_t depth = std::min(block, p.k - k0);
    const float* a_block = p.a_transposed
                               ? scratch.a.load(a, p.m, k0, depth, tile.first_row, tile.rows)
                               : scratch.a.load(a, p.k, tile.first_row, tile.rows, k0, depth);
    const float* b_block = p.b_transposed
                               ? scratch.b.load(b, p.k, tile.first_column, tile.columns, k0, depth)
                               : scratch.b.load(b, p.n, k0, depth, tile.first_column, tile.columns);
    f32_product({.m = tile.rows,
                 .n = tile.columns,
                 .k = depth,
                 .a = a_block,
                 .a_transposed = p.a_transposed,
                 .b = b_block,
                 .b_transposed = p.b_transposed,
                 .c = scratch.sum.data(),
                 .write = k0 == 0 ? Write::replace : Write::accumulate});
  }
}

/// c = sum (+ bias), or c += sum, for one tile of c.
template <class Element>
void write_tile(const Product& p, const Tile& tile, const float* sum) {
  const auto* bias = static_cast<const BFloat16*>(p.bias_N);
  const bool accumulate = p.write == Write::accumulate;
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    const float* source = sum + r * tile.columns;
    Element* target = static_cast<Element*>(p.c) + (tile.first_row + r) * p.n + tile.first_column;
    if (accumulate) {
      for (std::int64_t c = 0; c < tile.columns; ++c) {
        target[c] = Element(static_cast<float>(target[c]) + source[c]);
      }
    } else if (bias != nullptr) {
      for (std::int64_t c = 0; c < tile.columns; ++c) {
        target[c] = Element(source[c] + static_cast<float>(bias[tile.first_column + c]));
      }
    } else {
      for (std::int64_t c = 0; c < tile.columns; ++c) {
        target[c] = Element(source[c]);
      }
    }
  }
}

}  // namespace

void bf16_product_widened(const Product& p) {
  thread_local Scratch scratch;
  scratch.a.forget();
  scratch.b.forget();
  scratch.sum.resize(static_cast<std::size_t>(block * block));
  // With a short k, the block of b stays for all rows.
  for (std::int64_t column = 0; column < p.n; column += block) {
    for (std::int64_t row = 0; row < p.m; row += block) {
      const Tile tile{row, std::min(block, p.m - row), column, std::min(block, p.n - column)};
      multiply_tile(p, tile, scratch);
      if (p.c_dtype == DType::bf16) {
        write_tile<BFloat16>(p, tile, scratch.sum.data());
      } else {
        write_tile<float>(p, tile, scratch.sum.data());
      }
    }
  }
}

}  // namespace fourfold::kernels
