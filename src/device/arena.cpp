// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "gib.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/device.hpp>

#include <fmt/format.h>

#include <numeric>

namespace fourfold::device {

namespace {

MemoryKind kind_of(Arena::Backing backing) {
  return backing == Arena::Backing::pinned   ? MemoryKind::pinned
         : backing == Arena::Backing::shared ? MemoryKind::shared
                                             : MemoryKind::device;
}

}  // namespace

std::string_view name(MemoryUse use) noexcept {
  constexpr std::array<std::string_view, memory_use_count> names{
      "weights", "gradients", "optimizer", "activations", "communication", "workspace"};
  return names[static_cast<std::size_t>(use)];
}

TensorView Arena::take(MemoryUse use, DType dtype, Shape shape) {
  FOURFOLD_EXPECT(!sealed_);
  const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * size_in_bytes(dtype);
  if (!has_memory()) {
    void* const address = next_counted_address();
    bytes_[static_cast<std::size_t>(use)] += bytes;
    return {address, dtype, shape};
  }
  if (extend_) {
    bytes_[static_cast<std::size_t>(use)] += bytes;
    return {extend_(bytes), dtype, shape};
  }
  const MemoryKind kind = kind_of(backing_);
  const MemoryOwner owner = owner_of(kind);
  if (bytes > owner.total_bytes || total_bytes() + bytes > owner.total_bytes) {
    throw SystemError(
        ExitCode::config,
        fmt::format("{} need {:.1f} GiB more beside {:.1f} GiB (this {} has {:.1f} GiB) use a "
                    "smaller model, batch or context, or more ranks on more {}s",
                    name(use), gib(bytes), gib(total_bytes()), owner.name, gib(owner.total_bytes),
                    owner.name));
  }
  blocks_.push_back({use, Buffer(bytes, kind)});
  bytes_[static_cast<std::size_t>(use)] += bytes;
  return {blocks_.back().memory.data(), dtype, shape};
}

void Arena::for_each(const std::function<void(MemoryUse, void*, std::size_t)>& visit) const {
  for (const Block& block : blocks_) {
    visit(block.use, block.memory.data(), block.memory.bytes());
  }
}

void* Arena::next_counted_address() const noexcept {
  constexpr std::size_t beyond_user_space = std::size_t{1} << 55;  // an access ends the process
  constexpr std::size_t alignment = 256;                           // as real buffers have
  const std::size_t aligned = (total_bytes() + alignment - 1) / alignment * alignment;
  return reinterpret_cast<void*>(beyond_user_space + aligned);  // NOLINT(performance-no-int-to-ptr)
}

std::size_t Arena::total_bytes() const noexcept {
  return std::accumulate(bytes_.begin(), bytes_.end(), std::size_t{0});
}

}  // namespace fourfold::device
