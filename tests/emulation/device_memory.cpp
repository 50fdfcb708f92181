// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "device_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace fourfold::emulated {
namespace {

constexpr std::size_t alignment_bytes = 512;
/// Memory is closed and opened in pages of this size where the system has them: so it takes a
/// thousandth of the time.
constexpr std::size_t page_bytes = std::size_t{2} << 20;
constexpr int not_a_number = 0xFF;  // all bytes of it: NaN in every format

std::size_t wanted_bytes() {
  const char* const mib = std::getenv("FOURFOLD_EMULATED_GPU_MIB");
  return (mib == nullptr ? std::size_t{4096} : std::strtoull(mib, nullptr, 10)) << 20;
}

std::size_t rounded(std::size_t bytes) {
  return (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

}  // namespace

DeviceMemory& DeviceMemory::get() {
  static auto* const memory = new DeviceMemory;  // outlives whatever frees at the end
  return *memory;
}

DeviceMemory::DeviceMemory() : total_bytes_(wanted_bytes()) {
  const std::size_t range_bytes = 2 * total_bytes_ + 2 * page_bytes;
  void* range =
      ::mmap(nullptr, range_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    throw std::bad_alloc();
  }
  std::size_t room = range_bytes;
  base_ =
      static_cast<std::byte*>(std::align(page_bytes, 2 * total_bytes_ + page_bytes, range, room));
  ::madvise(base_, 2 * total_bytes_, MADV_HUGEPAGE);
}

void DeviceMemory::protect(bool accessible) const {
  if (highest_ > 0) {
    ::mprotect(base_, highest_, accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
}

void DeviceMemory::open() {
  const std::scoped_lock lock(mutex_);
  if (depth_++ == 0) {
    protect(true);
  }
}

void DeviceMemory::close() {
  const std::scoped_lock lock(mutex_);
  if (--depth_ == 0) {
    protect(false);
  }
}

DeviceMemory::Closed::Closed() {
  DeviceMemory& memory = get();
  const std::scoped_lock lock(memory.mutex_);
  depth_ = std::exchange(memory.depth_, 0);
  memory.protect(false);
}

DeviceMemory::Closed::~Closed() {
  DeviceMemory& memory = get();
  const std::scoped_lock lock(memory.mutex_);
  memory.depth_ += depth_;
  if (memory.depth_ > 0) {
    memory.protect(true);
  }
}

void* DeviceMemory::allocate(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const std::size_t wanted = rounded(std::max<std::size_t>(bytes, 1));
  if (wanted < bytes) {
    return nullptr;
  }
  std::size_t begin = 0;
  for (const auto& [offset, length] : taken_) {
    if (offset - begin >= wanted) {
      break;
    }
    begin = offset + length;
  }
  if (begin + wanted > total_bytes_ || begin + wanted < wanted || wanted > free_bytes_locked()) {
    return nullptr;
  }
  taken_.emplace(begin, wanted);
  fill_with_nan(begin, wanted);
  return base_ + begin;
}

void DeviceMemory::fill_with_nan(std::size_t offset, std::size_t bytes) {
  highest_ = std::max(highest_, (offset + bytes + page_bytes - 1) / page_bytes * page_bytes);
  protect(true);
  std::memset(base_ + offset, not_a_number, bytes);
  protect(depth_ > 0);
}

bool DeviceMemory::free(void* data) {
  const std::scoped_lock lock(mutex_);
  const auto found = taken_.find(static_cast<std::size_t>(static_cast<std::byte*>(data) - base_));
  if (!(static_cast<std::byte*>(data) >= base_) || found == taken_.end()) {
    return false;
  }
  fill_with_nan(found->first, found->second);
  taken_.erase(found);
  return true;
}

bool DeviceMemory::contains(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  if (byte >= base_ && byte < base_ + total_bytes_) {
    return true;
  }
  const std::scoped_lock lock(mutex_);
  return std::ranges::any_of(reserved_, [&](const auto& part) {
    const std::byte* const first = base_ + part.first;
    return part.second.mapping == Mapping::open && byte >= first &&
           byte < first + part.second.bytes;
  });
}

bool DeviceMemory::take_pages(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const bool is_room = bytes <= free_bytes_locked();
  pages_bytes_ += is_room ? bytes : 0;
  return is_room;
}

void DeviceMemory::give_pages(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  pages_bytes_ -= bytes;
}

void* DeviceMemory::reserve(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  std::size_t begin = (total_bytes_ + page_bytes - 1) / page_bytes * page_bytes;
  for (const auto& [offset, part] : reserved_) {
    if (offset - begin >= bytes) {
      break;
    }
    begin = (offset + part.bytes + page_bytes - 1) / page_bytes * page_bytes;
  }
  if (begin + bytes > 2 * total_bytes_ + page_bytes) {
    return nullptr;
  }
  reserved_.emplace(begin, Reservation{.bytes = bytes});
  return base_ + begin;
}

DeviceMemory::Reservation* DeviceMemory::find_reserved(const void* data, std::size_t bytes) {
  const auto found =
      reserved_.find(static_cast<std::size_t>(static_cast<const std::byte*>(data) - base_));
  return found == reserved_.end() || found->second.bytes != bytes ? nullptr : &found->second;
}

bool DeviceMemory::unreserve(void* data, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const Reservation* const part = find_reserved(data, bytes);
  if (part == nullptr || part->mapping != Mapping::none) {
    return false;
  }
  reserved_.erase(static_cast<std::size_t>(static_cast<std::byte*>(data) - base_));
  return true;
}

bool DeviceMemory::map(void* data, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  Reservation* const part = find_reserved(data, bytes);
  if (part == nullptr || part->mapping != Mapping::none) {
    return false;
  }
  part->mapping = Mapping::closed;
  fill_with_nan(static_cast<std::size_t>(static_cast<std::byte*>(data) - base_), bytes);
  return true;
}

bool DeviceMemory::set_access(void* data, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  Reservation* const part = find_reserved(data, bytes);
  if (part == nullptr || part->mapping == Mapping::none) {
    return false;
  }
  part->mapping = Mapping::open;
  return true;
}

bool DeviceMemory::unmap(void* data, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  Reservation* const part = find_reserved(data, bytes);
  if (part == nullptr || part->mapping == Mapping::none) {
    return false;
  }
  part->mapping = Mapping::none;
  fill_with_nan(static_cast<std::size_t>(static_cast<std::byte*>(data) - base_), bytes);
  return true;
}

bool DeviceMemory::is_mapped(const void* data, std::size_t bytes) const {
  const auto* const begin = static_cast<const std::byte*>(data);
  const std::scoped_lock lock(mutex_);
  return std::ranges::any_of(reserved_, [&](const auto& part) {
    const std::byte* const first = base_ + part.first;
    return part.second.mapping == Mapping::open && begin >= first &&
           begin + bytes <= first + part.second.bytes;
  });
}

std::size_t DeviceMemory::free_bytes() const {
  const std::scoped_lock lock(mutex_);
  return free_bytes_locked();
}

std::size_t DeviceMemory::free_bytes_locked() const {
  std::size_t taken = pages_bytes_;
  for (const auto& [offset, length] : taken_) {
    taken += length;
  }
  return total_bytes_ - taken;
}

}  // namespace fourfold::emulated
