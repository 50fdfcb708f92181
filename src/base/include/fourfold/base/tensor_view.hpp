// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/contract.hpp>
#include <fourfold/base/dtype.hpp>
#include <fourfold/base/shape.hpp>

#include <cstddef>
#include <cstdint>

namespace fourfold {

/// A dense row-major tensor that somebody else owns, read-only: pointer, element type chosen at run
/// time, shape. Borrowed: valid as long as the buffer that it shows. A default-constructed view is
/// "absent" (data() == nullptr); optional operands (a bias, say) are passed that way.
class ConstTensorView {
 public:
  ConstTensorView() = default;
  ConstTensorView(const void* data, DType dtype, Shape shape)
      : data_(data), shape_(shape), dtype_(dtype) {}
  template <class T>
  ConstTensorView(const T* data, Shape shape) : ConstTensorView(data, dtype_of<T>, shape) {}

  const void* data() const noexcept { return data_; }
  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  std::int64_t dim(std::size_t index) const { return shape_[index]; }
  std::int64_t elements() const noexcept { return shape_.elements(); }
  std::size_t bytes() const noexcept { return elements() * size_in_bytes(dtype_); }
  explicit operator bool() const noexcept { return data_ != nullptr; }

  /// Typed access. @pre dtype() == dtype_of<T>
  template <class T>
  const T* as() const {
    FOURFOLD_EXPECT(dtype_ == dtype_of<T>);
    return static_cast<const T*>(data_);
  }

  /// The same elements under another shape. @pre shape.elements() == elements()
  ConstTensorView reshape(Shape shape) const {
    FOURFOLD_EXPECT(shape.elements() == elements());
    return {data_, dtype_, shape};
  }
  /// Rows [begin, begin + count) of the slowest dim.
  ConstTensorView rows(std::int64_t begin, std::int64_t count) const;

 private:
  const void* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::f32;
};

/// A dense row-major tensor that somebody else owns, writable. Converts to ConstTensorView.
class TensorView {
 public:
  TensorView() = default;
  TensorView(void* data, DType dtype, Shape shape) : data_(data), shape_(shape), dtype_(dtype) {}
  template <class T>
  TensorView(T* data, Shape shape) : TensorView(data, dtype_of<T>, shape) {}

  void* data() const noexcept { return data_; }
  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  std::int64_t dim(std::size_t index) const { return shape_[index]; }
  std::int64_t elements() const noexcept { return shape_.elements(); }
  std::size_t bytes() const noexcept { return elements() * size_in_bytes(dtype_); }
  explicit operator bool() const noexcept { return data_ != nullptr; }
  operator ConstTensorView() const {
    return {data_, dtype_, shape_};
  }  // NOLINT(google-explicit-constructor)

  /// Typed access. @pre dtype() == dtype_of<T>
  template <class T>
  T* as() const {
    FOURFOLD_EXPECT(dtype_ == dtype_of<T>);
    return static_cast<T*>(data_);
  }

  /// The same elements under another shape. @pre shape.elements() == elements()
  TensorView reshape(Shape shape) const {
    FOURFOLD_EXPECT(shape.elements() == elements());
    return {data_, dtype_, shape};
  }
  /// Rows [begin, begin + count) of the slowest dim.
  TensorView rows(std::int64_t begin, std::int64_t count) const;

 private:
  void* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::f32;
};

}  // namespace fourfold
