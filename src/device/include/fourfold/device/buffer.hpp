// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>

#include <cstddef>
#include <cstdint>

namespace fourfold::device {

/// Whose memory it is. On a host build all of it is the host's.
enum class MemoryKind : std::uint8_t {
  device,  ///< of this rank's device: the host must not touch it
  pinned,  ///< of the host, where a device copies from and to while the host does something else
  host,    ///< of the host, for what no device copies; needs no device
  shared,  ///< both read and write it, one after the other (cudaMallocManaged): slow
  registrable,  ///< the device's, in pages that other devices can be let into (NCCL's registration)
                ///< where the driver has such; else as `device`
};

/// Owns `bytes` of memory, aligned to 256 bytes, zero-filled. Move-only: a copy without a stream is
/// meaningless. Taking and giving it back may wait for all work of the device.
class Buffer {
 public:
  Buffer() = default;
  /// @throws SystemError (exit code config) with the bytes asked for when memory cannot be had.
  explicit Buffer(std::size_t bytes, MemoryKind kind = MemoryKind::device);

  void* data() const noexcept { return data_.get(); }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  NativeHandle data_;
  std::size_t bytes_ = 0;
};

/// Copies `bytes` between any two places (host or device), ordered on `stream`. Regions must not
/// overlap. Pageable memory of the host has been read when the call returns; a copy into it has
/// ended by then, and so has all work on `stream`: what may not block takes pinned memory.
void copy(void* target, const void* source, std::size_t bytes, StreamRef stream);

/// Copies `rows` rows of `row_bytes` each, as copy() does; rows begin so many bytes after each
/// other. @pre row_bytes is at most either pitch
void copy_rows(void* target, std::size_t target_pitch_bytes, const void* source,
               std::size_t source_pitch_bytes, std::size_t row_bytes, std::size_t rows,
               StreamRef stream);

/// Sets `bytes` to zero, ordered on `stream`.
void zero(void* target, std::size_t bytes, StreamRef stream);

/// Owns one tensor, which host and device reach unless `kind` says otherwise. For tests, and for
/// memory of the host; what a step computes with is the Arena's.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Shape shape, MemoryKind kind = MemoryKind::shared)
      : buffer_(shape.elements() * size_in_bytes(dtype), kind), shape_(shape), dtype_(dtype) {}

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

/// Device memory, aligned to 256 bytes and not initialised, that is taken and given back in the
/// order of a stream's work. Unlike with a Buffer neither waits for the device, which in the middle
/// of a step may wait for other ranks, and they for this one. Its end may, as a Buffer's.
/// Move-only.
class StreamBuffer {
 public:
  StreamBuffer() = default;
  /// For work on `stream` from here on. @throws SystemError (config) when it cannot be had
  StreamBuffer(std::size_t bytes, StreamRef stream);

  /// Ends it after the work that is on `stream` now, which is the last to use it.
  void give_back(StreamRef stream);

  void* data() const noexcept { return data_.get(); }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  NativeHandle data_;
  std::size_t bytes_ = 0;
};

}  // namespace fourfold::device
