// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "host_bytes.hpp"

#include <fourfold/device/buffer.hpp>

#include <cstring>

namespace fourfold::device {

Buffer::Buffer(std::size_t bytes, MemoryKind kind)
    : data_(allocate_host(bytes)), bytes_(bytes), kind_(kind) {}

Buffer::~Buffer() {
  free_host(data_);
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
