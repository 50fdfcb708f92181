// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Memory that several ranks of one machine see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace fourfold::comm {

/// A block that all ranks of a group see, zero at first and aligned to pages. It is gone when the
/// last of them lets go of it, also by dying: it has no name that could be left behind.
struct SharedMemory {
  std::shared_ptr<std::byte> data;
  /// After others may have to see what was written: wakes those that sleep until something changes.
  std::function<void()> wake_others = [] {};
  /// What the others find it by: to let go of when nobody else will ask.
  std::shared_ptr<void> offered = nullptr;
};

/// What the rank that made a block tells the others, so that they find it. Plain bytes.
struct MemoryOffer {
  std::int64_t owner = 0;   ///< process, or address
  std::int64_t handle = 0;  ///< its file descriptor
  std::uint64_t token = 0;  ///< stands in the block: another machine's process may have the number
};

/// Between processes: an anonymous file (memfd_create), which the others open through /proc. These
/// return nothing where the system does not allow it.
std::optional<SharedMemory> make_process_memory(std::size_t bytes, MemoryOffer& offer);
std::optional<SharedMemory> find_process_memory(std::size_t bytes, const MemoryOffer& offer);

}  // namespace fourfold::comm
