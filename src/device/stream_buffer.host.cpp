// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "host_bytes.hpp"

#include <fourfold/device/stream_buffer.hpp>

#include <utility>

namespace fourfold::device {

StreamBuffer::StreamBuffer(std::size_t bytes, StreamRef /*stream*/)
    : data_(allocate_host(bytes)), bytes_(bytes) {}

StreamBuffer::~StreamBuffer() {
  free_host(data_);
}

StreamBuffer::StreamBuffer(StreamBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

StreamBuffer& StreamBuffer::operator=(StreamBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void StreamBuffer::give_back(StreamRef /*stream*/) {
  *this = StreamBuffer();
}

}  // namespace fourfold::device
