// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "host_bytes.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/device/process_memory.hpp>

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace fourfold::device {

NativeHandle allocate_host(std::size_t bytes) {
  if (bytes == 0) {
    return {};
  }
  const std::size_t rounded = aligned(bytes);
  void* const data = rounded < bytes ? nullptr : std::aligned_alloc(alignment_bytes, rounded);
  if (data == nullptr) {
    throw SystemError(
        ExitCode::config,
        format_message("cannot allocate {} bytes of host memory (the system refused); {}", bytes,
                       remedies().host_memory));
  }
  std::memset(data, 0, rounded);
  return {data, [](void* owned) { std::free(owned); }};
}

MemoryOwner host_owner() {
  static const std::size_t total_bytes = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
  const std::size_t free_bytes = available_memory_bytes().value_or(0);
  return {"host", total_bytes, free_bytes};
}

}  // namespace fourfold::device
