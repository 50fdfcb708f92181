// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A product that goes wrong: one column of one call of kernels/matmul.hpp, or of a product inside
/// kernels/attention.hpp, counts twice. The linker puts these bodies in front of the real ones
/// (--wrap), in this test program only.
#pragma once

#include <cstdint>
#include <string_view>

namespace fourfold::test {

/// The functions of kernels/matmul.hpp, and the products of attention: q k^T, p v and, backward,
/// dq, dk, dv, dout v^T and q k^T once more. A column of scores (or of dout v^T) is a key.
enum class Product : std::uint8_t {
  linear,
  linear_gelu,
  backward_input,
  backward_input_gelu,
  backward_weight,
  tile,
  tile_backward_input,
  tile_backward_weight,
  attention_scores,
  attention_output,
  query_gradient,
  key_gradient,
  value_gradient,
  softmax_gradient,
  scores_again,
};
std::string_view name(Product product) noexcept;

/// Counts each rank's calls of each product, and spoils one of them. Ranks are threads, 8 at most.
class MatmulFault {
 public:
  /// From now on calls are counted anew, and the `call`-th one (from 0) of `product` by `rank` has
  /// column `column`, modulo the width of its result, doubled.
  static void arm(Product product, int rank, std::int64_t call, std::int64_t column);
  /// From now on calls are counted anew, and none is spoiled.
  static void count_only();
  /// Calls since then.
  static std::int64_t calls(Product product, int rank);
  /// Whether the call came, and a bit changed by it.
  static bool happened();
  /// Calls are neither counted nor spoiled.
  static void disarm();
};

}  // namespace fourfold::test
