// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda_check.hpp"
#include "host_bytes.hpp"
#include "native_stream.hpp"
#include "registrable_memory.hpp"

#include <fourfold/device/buffer.hpp>

#include <tuple>

namespace fourfold::device {

namespace {

/// @param kind  becomes device where there is no registrable memory
void* allocate(std::size_t bytes, MemoryKind& kind) {
  if (bytes == 0) {
    return nullptr;
  }
  if (kind == MemoryKind::host) {
    return allocate_host(bytes);
  }
  bind_thread();
  void* data = nullptr;
  switch (kind) {
    case MemoryKind::pinned:
      check_cuda(cudaHostAlloc(&data, bytes, cudaHostAllocPortable), "cudaHostAlloc", bytes);
      break;
    case MemoryKind::shared:
      check_cuda(cudaMallocManaged(&data, bytes, cudaMemAttachGlobal), "cudaMallocManaged", bytes);
      break;
    case MemoryKind::registrable:
      data = allocate_registrable(bytes);
      if (data != nullptr) {
        break;
      }
      kind = MemoryKind::device;
      [[fallthrough]];
    default:
      check_cuda(cudaMalloc(&data, bytes), "cudaMalloc", bytes);
      break;
  }
  return data;
}

}  // namespace

// Delegates, so that what was taken is given back when zero() throws.
Buffer::Buffer(std::size_t bytes, MemoryKind kind) : Buffer() {
  data_ = allocate(bytes, kind);
  bytes_ = bytes;
  kind_ = kind;
  if (bytes > 0 && kind != MemoryKind::host) {
    zero(data_, bytes, {});
  }
}

Buffer::~Buffer() {
  // A failure here would be of an earlier call, or the end of the process: both are known.
  switch (kind_) {
    case MemoryKind::host:
      free_host(data_);
      break;
    case MemoryKind::pinned:
      std::ignore = cudaFreeHost(data_);
      break;
    case MemoryKind::registrable:
      if (data_ != nullptr) {
        free_registrable(data_, bytes_);
      }
      break;
    default:
      if (data_ != nullptr) {
        std::ignore = cudaFree(data_);
      }
      break;
  }
}

void copy(void* target, const void* source, std::size_t bytes, StreamRef stream) {
  if (bytes == 0) {
    return;
  }
  bind_thread();
  check_cuda(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, native(stream)),
             "cudaMemcpyAsync", bytes);
  finish_if_default(stream);
}

void copy_rows(const Rows& target, const ConstRows& source, std::size_t row_bytes, std::size_t rows,
               StreamRef stream) {
  if (row_bytes == 0 || rows == 0) {
    return;
  }
  bind_thread();
  check_cuda(cudaMemcpy2DAsync(target.first, target.pitch_bytes, source.first, source.pitch_bytes,
                               row_bytes, rows, cudaMemcpyDefault, native(stream)),
             "cudaMemcpy2DAsync", row_bytes * rows);
  finish_if_default(stream);
}

void zero(void* target, std::size_t bytes, StreamRef stream) {
  if (bytes == 0) {
    return;
  }
  bind_thread();
  check_cuda(cudaMemsetAsync(target, 0, bytes, native(stream)), "cudaMemsetAsync", bytes);
  finish_if_default(stream);
}

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
    std::ignore = cudaFree(data_);
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
