// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "host_bytes.hpp"

#include <fourfold/device/stream_buffer.hpp>

namespace fourfold::device {

StreamBuffer::StreamBuffer(std::size_t bytes, StreamRef /*stream*/)
    : data_(allocate_host(bytes)), bytes_(bytes) {}

StreamBuffer::~StreamBuffer() {
  free_host(data_);
}

void StreamBuffer::give_back(StreamRef /*stream*/) {
  *this = StreamBuffer();
}

}  // namespace fourfold::device
