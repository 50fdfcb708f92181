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

// A failure to give back would be of an earlier call, or the end of the process: both are known.

void free_device(void* data) {
  std::ignore = cudaFree(data);
}

NativeHandle allocate(std::size_t bytes, MemoryKind kind) {
  if (bytes == 0) {
    return {};
  }
  if (kind == MemoryKind::host) {
    return allocate_host(bytes);
  }
  bind_thread();
  void* data = nullptr;
  switch (kind) {
    case MemoryKind::pinned:
      check_cuda(cudaHostAlloc(&data, bytes, cudaHostAllocPortable), "cudaHostAlloc", bytes);
      return {data, [](void* owned) { std::ignore = cudaFreeHost(owned); }};
    case MemoryKind::shared:
      check_cuda(cudaMallocManaged(&data, bytes, cudaMemAttachGlobal), "cudaMallocManaged", bytes);
      return {data, free_device};
    case MemoryKind::registrable:
      data = allocate_registrable(bytes);
      if (data != nullptr) {
        return {data, [bytes](void* owned) { free_registrable(owned, bytes); }};
      }
      [[fallthrough]];
    default:
      check_cuda(cudaMalloc(&data, bytes), "cudaMalloc", bytes);
      return {data, free_device};
  }
}

}  // namespace

Buffer::Buffer(std::size_t bytes, MemoryKind kind) : data_(allocate(bytes, kind)), bytes_(bytes) {
  if (bytes > 0 && kind != MemoryKind::host) {
    zero(data(), bytes, {});
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

void copy_rows(void* target, std::size_t target_pitch_bytes, const void* source,
               std::size_t source_pitch_bytes, std::size_t row_bytes, std::size_t rows,
               StreamRef stream) {
  if (row_bytes == 0 || rows == 0) {
    return;
  }
  bind_thread();
  check_cuda(cudaMemcpy2DAsync(target, target_pitch_bytes, source, source_pitch_bytes, row_bytes,
                               rows, cudaMemcpyDefault, native(stream)),
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
    void* data = nullptr;
    check_cuda(cudaMallocAsync(&data, bytes, native(stream)), "cudaMallocAsync", bytes);
    data_ = {data, free_device};
    finish_if_default(stream);
  }
}

void StreamBuffer::give_back(StreamRef stream) {
  if (data_ != nullptr) {
    bind_thread();
    refuse_in_graph(stream, "cudaFreeAsync");
    check_cuda(cudaFreeAsync(data(), native(stream)), "cudaFreeAsync", bytes_);
    std::ignore = data_.release();
    finish_if_default(stream);
  }
  bytes_ = 0;
}

}  // namespace fourfold::device
