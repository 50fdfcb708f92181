// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/io/checkpoint_diff.hpp>

#include <cstddef>
#include <span>

namespace fourfold::io {

/// Gathers how a tensor's elements differ, box by box.
class ElementDiff {
 public:
  /// @param difference  filled by finish(); id and elements are there. Borrowed
  /// @param largest     elements to name
  ElementDiff(TensorDifference& difference, DType dtype, std::size_t largest);

  /// @param a, b  the elements of `box`, dense
  void add(const Box& box, std::span<const std::byte> a, std::span<const std::byte> b);
  void finish();

 private:
  template <class T>
  void add_as(const Box& box, std::span<const std::byte> a, std::span<const std::byte> b);
  void note(const Box& box, std::int64_t element, double a, double b);

  TensorDifference* difference_;
  DType dtype_;
  std::size_t largest_;
  double sum_of_squares_ = 0;
};

}  // namespace fourfold::io
