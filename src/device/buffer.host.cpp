// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "host_bytes.hpp"

#include <fourfold/device/buffer.hpp>

#include <cstring>

namespace fourfold::device {

Buffer::Buffer(std::size_t bytes, MemoryKind /*kind*/)
    : data_(allocate_host(bytes)), bytes_(bytes) {}

void copy(void* target, const void* source, std::size_t bytes, StreamRef /*stream*/) {
  if (bytes > 0) {
    std::memcpy(target, source, bytes);
  }
}

void copy_rows(void* target, std::size_t target_pitch_bytes, const void* source,
               std::size_t source_pitch_bytes, std::size_t row_bytes, std::size_t rows,
               StreamRef stream) {
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  for (std::size_t row = 0; row < rows; ++row) {
    copy(to + row * target_pitch_bytes, from + row * source_pitch_bytes, row_bytes, stream);
  }
}

void zero(void* target, std::size_t bytes, StreamRef /*stream*/) {
  if (bytes > 0) {
    std::memset(target, 0, bytes);
  }
}

StreamBuffer::StreamBuffer(std::size_t bytes, StreamRef /*stream*/)
    : data_(allocate_host(bytes)), bytes_(bytes) {}

void StreamBuffer::give_back(StreamRef /*stream*/) {
  *this = StreamBuffer();
}

}  // namespace fourfold::device
