// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "host_bytes.hpp"

#include <fourfold/device/buffer.hpp>

#include <cstring>
#include <utility>

namespace fourfold::device {

Buffer::Buffer(std::size_t bytes, MemoryKind kind)
    : data_(allocate_host(bytes)), bytes_(bytes), kind_(kind) {}

Buffer::~Buffer() {
  free_host(data_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      kind_(other.kind_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(kind_, other.kind_);
  return *this;
}

void copy(void* target, const void* source, std::size_t bytes, StreamRef /*stream*/) {
  if (bytes > 0) {
    std::memcpy(target, source, bytes);
  }
}

void zero(void* target, std::size_t bytes, StreamRef /*stream*/) {
  if (bytes > 0) {
    std::memset(target, 0, bytes);
  }
}

}  // namespace fourfold::device
