// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda_check.hpp"
#include "native_stream.hpp"

#include <fourfold/device/stream_buffer.hpp>

namespace fourfold::device {

StreamBuffer::StreamBuffer(std::size_t bytes, StreamRef stream) : bytes_(bytes) {
  if (bytes > 0) {
    bind_thread();
    refuse_in_graph(stream, "cudaMallocAsync");
    check_cuda(cudaMallocAsync(&data_, bytes, native(stream)), "cudaMallocAsync", bytes);
    finish_if_default(stream);
  }
}

StreamBuffer::~StreamBuffer() {
  if (data_ != nullptr) {
    static_cast<void>(cudaFree(data_));
  }
}

void StreamBuffer::give_back(StreamRef stream) {
  if (data_ != nullptr) {
    bind_thread();
    refuse_in_graph(stream, "cudaFreeAsync");
    check_cuda(cudaFreeAsync(data_, native(stream)), "cudaFreeAsync", bytes_);
    finish_if_default(stream);
  }
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace fourfold::device
