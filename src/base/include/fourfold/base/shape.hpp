// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/contract.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace fourfold {

/// Extents (or offsets) of up to eight dims, slowest first. A value: cheap to copy, never
/// allocates. Rank 0 is a scalar and has one element.
class Shape {
 public:
  static constexpr std::size_t max_rank = 8;

  constexpr Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims) : rank_(dims.size()) {
    FOURFOLD_EXPECT(dims.size() <= max_rank);
    std::copy_n(dims.begin(), std::min(dims.size(), max_rank), dims_.begin());
  }
  /// `rank` dims that are all `value`.
  static Shape filled(std::size_t rank, std::int64_t value) {
    Shape result;
    FOURFOLD_EXPECT(rank <= max_rank);
    result.rank_ = rank;
    std::fill_n(result.dims_.begin(), rank, value);
    return result;
  }

  std::size_t rank() const noexcept { return rank_; }
  std::int64_t operator[](std::size_t dim) const {
    FOURFOLD_EXPECT(dim < rank_);
    return dims_[dim];
  }
  std::int64_t& operator[](std::size_t dim) {
    FOURFOLD_EXPECT(dim < rank_);
    return dims_[dim];
  }
  const std::int64_t* begin() const noexcept { return dims_.data(); }
  const std::int64_t* end() const noexcept { return dims_.data() + rank_; }

  /// Product of all dims; 1 for rank 0.
  std::int64_t elements() const noexcept {
    std::int64_t product = 1;
    for (std::int64_t extent : *this) {
      product *= extent;
    }
    return product;
  }

  /// "[768, 3072]"
  std::string str() const;

  friend bool operator==(const Shape& a, const Shape& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<std::int64_t, max_rank> dims_{};
  std::size_t rank_ = 0;
};

}  // namespace fourfold
