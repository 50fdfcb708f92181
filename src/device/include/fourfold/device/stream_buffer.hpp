// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>

#include <cstddef>

namespace fourfold::device {

/// Device memory, aligned to 256 bytes and not initialised, that is taken and given back in the
/// order of a stream's work. Unlike with a Buffer neither waits for the device, which in the middle
/// of a step may wait for other ranks, and they for this one. Move-only.
class StreamBuffer {
 public:
  StreamBuffer() = default;
  /// For work on `stream` from here on. @throws SystemError (config) when it cannot be had
  StreamBuffer(std::size_t bytes, StreamRef stream);
  /// As a Buffer: may wait for all work of the device.
  ~StreamBuffer();
  StreamBuffer(StreamBuffer&& other) noexcept;
  StreamBuffer& operator=(StreamBuffer&& other) noexcept;

  /// Ends it after the work that is on `stream` now, which is the last to use it.
  void give_back(StreamRef stream);

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace fourfold::device
