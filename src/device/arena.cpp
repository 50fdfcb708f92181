// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "host_bytes.hpp"

#include <fourfold/base/amount.hpp>
#include <fourfold/base/enum_name.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/device.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

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
  return name_in(names, use);
}

TensorView Arena::take(MemoryUse use, DType dtype, Shape shape) {
  FOURFOLD_EXPECT(!sealed_);
  const std::size_t bytes = shape.elements() * size_in_bytes(dtype);
  void* const data = place(use, bytes);
  of_use(bytes_, use) += bytes;
  of_use(extents_, use) += aligned(bytes);
  return {data, dtype, shape};
}

void* Arena::place(MemoryUse use, std::size_t bytes) {
  if (!has_memory()) {
    return next_counted_address();
  }
  if (extend_) {
    return extend_(bytes);
  }
  if (bytes == 0) {
    return nullptr;
  }
  if (!block_bytes_) {
    return add_block(use, bytes, kind_of(backing_)).memory.data();
  }
  Block& block = block_with_room(use, aligned(bytes));
  void* const data = static_cast<std::byte*>(block.memory.data()) + block.taken;
  block.taken += aligned(bytes);
  return data;
}

Arena::Block& Arena::block_with_room(MemoryUse use, std::size_t bytes) {
  const auto found = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return block.use == use && block.memory.bytes() - block.taken >= bytes;
  });
  if (found != blocks_.end()) {
    return *found;
  }
  const std::size_t planned = std::exchange(of_use(*block_bytes_, use), 0);
  return add_block(use, std::max(planned, bytes), MemoryKind::registrable);
}

Arena::Block& Arena::add_block(MemoryUse use, std::size_t bytes, MemoryKind kind) {
  const MemoryOwner owner = owner_of(kind);
  const std::size_t owned = owned_bytes();
  if (bytes > owner.total_bytes || owned + bytes > owner.total_bytes) {
    throw SystemError(
        ExitCode::config,
        format_message("{} need {:.1f} GiB more beside {:.1f} GiB (this {} has {:.1f} GiB, of "
                       "which {:.1f} GiB are free); {}",
                       name(use), gib(bytes), gib(owned), owner.name, gib(owner.total_bytes),
                       gib(owner.free_bytes),
                       has_own_memory && owner.name != "host" ? remedies().device_memory
                                                              : remedies().host_memory));
  }
  return blocks_.emplace_back(Block{.use = use, .memory = Buffer(bytes, kind)});
}

void Arena::for_each(const std::function<void(MemoryUse, void*, std::size_t)>& visit) const {
  for (const Block& block : blocks_) {
    visit(block.use, block.memory.data(), block.memory.bytes());
  }
}

void* Arena::next_counted_address() const noexcept {
  constexpr std::size_t beyond_user_space = std::size_t{1} << 55;  // an access ends the process
  return reinterpret_cast<void*>(beyond_user_space +
                                 aligned(total_bytes()));  // NOLINT(performance-no-int-to-ptr)
}

std::size_t Arena::owned_bytes() const noexcept {
  return std::accumulate(
      blocks_.begin(), blocks_.end(), std::size_t{0},
      [](std::size_t sum, const Block& block) { return sum + block.memory.bytes(); });
}

std::size_t Arena::total_bytes() const noexcept {
  return std::accumulate(bytes_.begin(), bytes_.end(), std::size_t{0});
}

}  // namespace fourfold::device
