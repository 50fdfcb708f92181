// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "load/extent_reader.hpp"

#include <fourfold/base/dtype.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace fourfold::io {
namespace {

template <class T>
double as_double(T value) {
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

/// Coordinates in the tensor of the `element`-th element of a box.
std::vector<std::int64_t> index_in_tensor(const Box& box, std::int64_t element) {
  std::vector<std::int64_t> index(box.rank());
  for (std::size_t dim = box.rank(); dim-- > 0;) {
    index[dim] = box.offset[dim] + element % box.extent[dim];
    element /= box.extent[dim];
  }
  return index;
}

/// What order the largest differences have: those that are no number first.
double size_of(const ElementPair& pair) {
  const double size = std::abs(pair.a - pair.b);
  return std::isnan(size) ? std::numeric_limits<double>::infinity() : size;
}

}  // namespace

ElementDiff::ElementDiff(TensorDifference& difference, DType dtype, std::size_t largest)
    : difference_(&difference), dtype_(dtype), largest_(largest) {}

void ElementDiff::add(const Box& box, std::span<const std::byte> a, std::span<const std::byte> b) {
  switch (dtype_) {
    case DType::f32:
      return add_as<float>(box, a, b);
    case DType::bf16:
      return add_as<BFloat16>(box, a, b);
    case DType::f16:
      return add_as<Float16>(box, a, b);
    case DType::f64:
      return add_as<double>(box, a, b);
    case DType::i32:
      return add_as<std::int32_t>(box, a, b);
    case DType::i64:
      return add_as<std::int64_t>(box, a, b);
    case DType::u8:
      return add_as<std::uint8_t>(box, a, b);
    case DType::u16:
      return add_as<std::uint16_t>(box, a, b);
    case DType::u32:
      return add_as<std::uint32_t>(box, a, b);
    case DType::u64:
      return add_as<std::uint64_t>(box, a, b);
  }
}

template <class T>
void ElementDiff::add_as(const Box& box, std::span<const std::byte> a,
                         std::span<const std::byte> b) {
  for (std::int64_t element = 0; element < box.elements(); ++element) {
    const std::size_t at = element * sizeof(T);
    if (std::memcmp(a.data() + at, b.data() + at, sizeof(T)) == 0) {
      continue;
    }
    T x;
    T y;
    std::memcpy(&x, a.data() + at, sizeof(T));
    std::memcpy(&y, b.data() + at, sizeof(T));
    note(box, element, as_double(x), as_double(y));
  }
}

void ElementDiff::note(const Box& box, std::int64_t element, double a, double b) {
  const ElementPair pair{{}, a, b};
  const double size = size_of(pair);
  ++difference_->different;
  difference_->max_abs = std::max(difference_->max_abs, size);
  sum_of_squares_ += size * size;
  std::vector<ElementPair>& largest = difference_->largest;
  if (largest.size() == largest_ && (largest_ == 0 || size <= size_of(largest.back()))) {
    return;
  }
  const auto after = std::ranges::find_if(
      largest, [&](const ElementPair& other) { return size_of(other) < size; });
  largest.insert(after, {index_in_tensor(box, element), a, b});
  if (largest.size() > largest_) {
    largest.pop_back();
  }
}

void ElementDiff::finish() {
  if (difference_->elements > 0) {
    difference_->rms = std::sqrt(sum_of_squares_ / static_cast<double>(difference_->elements));
  }
}

}  // namespace fourfold::io
