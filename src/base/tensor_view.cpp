// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/tensor_view.hpp>

namespace fourfold {
namespace {

/// Shape of `count` rows of `shape` and the bytes in front of row `begin`.
std::pair<Shape, std::size_t> row_slice(const Shape& shape, DType dtype, std::int64_t begin,
                                        std::int64_t count) {
  FOURFOLD_EXPECT(shape.rank() > 0 && begin >= 0 && count >= 0 && begin + count <= shape[0]);
  Shape slice = shape;
  slice[0] = 1;
  const auto row_bytes = slice.elements() * size_in_bytes(dtype);
  slice[0] = count;
  return {slice, row_bytes * begin};
}

}  // namespace

ConstTensorView ConstTensorView::rows(std::int64_t begin, std::int64_t count) const {
  const auto [slice, skip_bytes] = row_slice(shape_, dtype_, begin, count);
  return {static_cast<const std::byte*>(data_) + skip_bytes, dtype_, slice};
}

TensorView TensorView::rows(std::int64_t begin, std::int64_t count) const {
  const auto [slice, skip_bytes] = row_slice(shape_, dtype_, begin, count);
  return {static_cast<std::byte*>(data_) + skip_bytes, dtype_, slice};
}

}  // namespace fourfold
