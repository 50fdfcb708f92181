// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/contract.hpp>
#include <fourfold/base/dtype.hpp>
#include <fourfold/base/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fourfold {

/// A dense row-major tensor that somebody else owns: pointer, element type chosen at run time,
/// shape. Borrowed: valid as long as the buffer that it shows. A default-constructed view is
/// "absent" (data() == nullptr); optional operands (a bias, say) are passed that way.
/// @tparam Void  void, or const void for one that is read-only, to which the other converts
template <class Void>
class AnyTensorView {
  template <class T>
  using Like = std::conditional_t<std::is_const_v<Void>, const T, T>;

 public:
  AnyTensorView() = default;
  AnyTensorView(Void* data, DType dtype, Shape shape) : data_(data), shape_(shape), dtype_(dtype) {}
  template <class T>
  AnyTensorView(T* data, Shape shape)
      : AnyTensorView(data, dtype_of<std::remove_const_t<T>>, shape) {}
  // A constructor, for of a conversion of the other kind nvcc warns where it converts to its own.
  template <class Other>
  requires(std::is_const_v<Void> && !std::is_const_v<Other>)
      AnyTensorView(const AnyTensorView<Other>& other)  // NOLINT(google-explicit-constructor)
      : AnyTensorView(other.data(), other.dtype(), other.shape()) {}

  Void* data() const noexcept { return data_; }
  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  std::int64_t dim(std::size_t index) const { return shape_[index]; }
  std::int64_t elements() const noexcept { return shape_.elements(); }
  std::size_t bytes() const noexcept { return elements() * size_in_bytes(dtype_); }
  explicit operator bool() const noexcept { return data_ != nullptr; }

  /// Typed access. @pre dtype() == dtype_of<T>
  template <class T>
  Like<T>* as() const {
    FOURFOLD_EXPECT(dtype_ == dtype_of<T>);
    return static_cast<Like<T>*>(data_);
  }

  /// The same elements under another shape. @pre shape.elements() == elements()
  AnyTensorView reshape(Shape shape) const {
    FOURFOLD_EXPECT(shape.elements() == elements());
    return {data_, dtype_, shape};
  }
  /// Rows [begin, begin + count) of the slowest dim.
  AnyTensorView rows(std::int64_t begin, std::int64_t count) const {
    FOURFOLD_EXPECT(shape_.rank() > 0 && begin >= 0 && count >= 0 && begin + count <= shape_[0]);
    Shape slice = shape_;
    slice[0] = 1;
    const std::size_t row_bytes = slice.elements() * size_in_bytes(dtype_);
    slice[0] = count;
    return {static_cast<Like<std::byte>*>(data_) + row_bytes * begin, dtype_, slice};
  }

 private:
  Void* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::f32;
};

using TensorView = AnyTensorView<void>;
using ConstTensorView = AnyTensorView<const void>;

}  // namespace fourfold
