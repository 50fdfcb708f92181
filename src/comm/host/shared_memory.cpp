// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "shared_memory.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/unique_handle.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>

namespace fourfold::comm {
namespace {

/// The token's page stands in front of what users see.
constexpr std::size_t head_bytes = 4096;

/// @param bytes  with the head. @return what follows the head; nullptr where it cannot be mapped
std::shared_ptr<std::byte> map(const FileDescriptor& file, std::size_t bytes) {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) {
    return nullptr;
  }
  return {static_cast<std::byte*>(mapped) + head_bytes, [bytes](std::byte* data) {
            if (::munmap(data - head_bytes, bytes) != 0) {
              log::local(log::Level::warning, "shared memory could not be unmapped");
            }
          }};
}

}  // namespace

std::optional<SharedMemory> make_process_memory(std::size_t bytes, MemoryOffer& offer) {
  const std::size_t all_bytes = head_bytes + bytes;
  FileDescriptor file(::memfd_create("fourfold", MFD_CLOEXEC));
  if (!file || ::ftruncate(file.get(), all_bytes) != 0 ||
      ::getrandom(&offer.token, sizeof(offer.token), 0) != ::ssize_t{sizeof(offer.token)}) {
    return std::nullopt;
  }
  SharedMemory memory{.data = map(file, all_bytes)};
  if (!memory.data) {
    return std::nullopt;
  }
  std::memcpy(memory.data.get() - head_bytes, &offer.token, sizeof(offer.token));
  offer.owner = ::getpid();
  offer.handle = file.get();
  memory.offered = std::make_shared<FileDescriptor>(std::move(file));
  return memory;
}

std::optional<SharedMemory> find_process_memory(std::size_t bytes, const MemoryOffer& offer) {
  const std::size_t all_bytes = head_bytes + bytes;
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.owner, offer.handle);
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
      !std::cmp_equal(facts.st_size, all_bytes)) {
    return std::nullopt;
  }
  SharedMemory memory{.data = map(file, all_bytes)};
  std::uint64_t token = 0;
  if (memory.data) {
    std::memcpy(&token, memory.data.get() - head_bytes, sizeof(token));
  }
  return token == offer.token ? std::optional(std::move(memory)) : std::nullopt;
}

}  // namespace fourfold::comm
