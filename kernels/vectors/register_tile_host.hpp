// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Small matrix products that live in the vector registers of a CPU core: the inner part of
/// attention, whose blocks are too small for a library call. Written with the vector types that GCC
/// and Clang share, so that the sums certainly stay in registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fourfold::kernels {

// As many rows of two vectors as leave registers for two vectors of b and one number of a.
#if defined(__AVX512F__)
inline constexpr std::int64_t register_lanes = 16;
inline constexpr std::int64_t tile_rows = 12;
#elif defined(__AVX__)
inline constexpr std::int64_t register_lanes = 8;
inline constexpr std::int64_t tile_rows = 6;
#else
inline constexpr std::int64_t register_lanes = 4;
inline constexpr std::int64_t tile_rows = 6;
#endif

/// f32 numbers in one register.
using Lanes [[gnu::vector_size(register_lanes * sizeof(float))]] = float;

/// A strided matrix: element (i, j) is data[i * row + j * column].
struct Strided {
  const float* data;
  std::int64_t row;
  std::int64_t column;
};

/// c (+)= a b for tile_rows rows and `vectors` * register_lanes columns. a is read one number at a
/// time, with any strides; rows of b and c are contiguous, b_row and c_row apart.
template <int vectors, bool accumulate>
[[gnu::noinline]] inline void multiply_tile(Strided a, const float* b, std::int64_t b_row, float* c,
                                            std::int64_t c_row, std::int64_t depth) {
  Lanes sum[tile_rows][vectors] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
    Lanes b_k[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      std::memcpy(&b_k[v], b + k * b_row + v * register_lanes, sizeof(Lanes));
    }
#pragma GCC unroll 16
    for (int i = 0; i < tile_rows; ++i) {
      const float a_ik = a.data[i * a.row + k * a.column];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        sum[i][v] += a_ik * b_k[v];
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < tile_rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      float* target = c + i * c_row + v * register_lanes;
      if constexpr (accumulate) {
        Lanes before;
        std::memcpy(&before, target, sizeof(Lanes));
        sum[i][v] += before;
      }
      std::memcpy(target, &sum[i][v], sizeof(Lanes));
    }
  }
}

/// c (+)= a b for tile_rows rows and `columns` columns.
/// @pre columns is a multiple of register_lanes; the rows of a, b and c are there in full (padded)
template <bool accumulate>
inline void multiply_panel(Strided a, const float* b, std::int64_t b_row, float* c,
                           std::int64_t c_row, std::int64_t columns, std::int64_t depth) {
  std::int64_t j = 0;
  for (; j + 2 * register_lanes <= columns; j += 2 * register_lanes) {
    multiply_tile<2, accumulate>(a, b + j, b_row, c + j, c_row, depth);
  }
  if (j < columns) {
    multiply_tile<1, accumulate>(a, b + j, b_row, c + j, c_row, depth);
  }
}

}  // namespace fourfold::kernels
