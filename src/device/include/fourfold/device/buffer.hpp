// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>

#include <cstddef>
#include <memory>

namespace fourfold::device {

/// Owns `bytes` of device memory (host memory on a host build), aligned to 256 bytes, zero-filled.
/// Move-only: a copy without a stream is meaningless.
class Buffer {
 public:
  Buffer() = default;
  /// @throws SystemError (exit code config) with the bytes asked for when memory cannot be had.
  explicit Buffer(std::size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Copies `bytes` between any two places (host or device), ordered on `stream`. Regions must not
/// overlap.
void copy(void* target, const void* source, std::size_t bytes, StreamRef stream);

/// Sets `bytes` to zero, ordered on `stream`.
void zero(void* target, std::size_t bytes, StreamRef stream);

/// Owns one tensor. For set-up code and tests; a step uses the Arena.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Shape shape)
      : buffer_(static_cast<std::size_t>(shape.elements()) * size_in_bytes(dtype)),
        shape_(shape),
        dtype_(dtype) {}

  TensorView view() const { return {buffer_.data(), dtype_, shape_}; }
  operator TensorView() const { return view(); }       // NOLINT(google-explicit-constructor)
  operator ConstTensorView() const { return view(); }  // NOLINT(google-explicit-constructor)
  const Shape& shape() const noexcept { return shape_; }
  template <class T>
  T* as() const {
    return view().as<T>();
  }

 private:
  Buffer buffer_;
  Shape shape_;
  DType dtype_ = DType::f32;
};

}  // namespace fourfold::device
