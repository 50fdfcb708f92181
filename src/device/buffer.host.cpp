// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/device/buffer.hpp>

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace fourfold::device {
namespace {
constexpr std::size_t alignment_bytes = 256;
}

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) {
    return;
  }
  const std::size_t rounded = (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  data_ = rounded < bytes ? nullptr : std::aligned_alloc(alignment_bytes, rounded);
  if (data_ == nullptr) {
    throw SystemError(ExitCode::config,
                      fmt::format("cannot allocate {} bytes of host memory (the system refused) "
                                  "use a smaller micro_batch or more ranks",
                                  bytes));
  }
  std::memset(data_, 0, rounded);
}

Buffer::~Buffer() {
  std::free(data_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
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
