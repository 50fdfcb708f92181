// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/buffer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace fourfold::device {

/// What memory is for; the planner, the log and out-of-memory messages use these names.
enum class MemoryUse : std::uint8_t {
  weights,
  gradients,
  optimizer,
  activations,
  communication,
  workspace
};
inline constexpr std::size_t memory_use_count = 6;
using MemoryBytes = std::array<std::size_t, memory_use_count>;  ///< by MemoryUse
/// That of one use. @param bytes  a MemoryBytes
template <class Bytes>
constexpr auto& of_use(Bytes& bytes, MemoryUse use) noexcept {
  return bytes[static_cast<std::size_t>(use)];
}
std::string_view name(MemoryUse use) noexcept;

/// All long-lived memory of one rank. Filled while a run is set up; after seal() nothing more can
/// be taken, which is how "a step allocates nothing" is enforced. Tensors stay valid until the
/// arena is destroyed. Not thread-safe: one arena per rank.
class Arena {
 public:
  /// What lies after the tensors. counted: nothing; they have addresses of their own, but must
  /// never be read or written, and there may be more of them than any machine has. So that what a
  /// rank will need can be known without having it: by the same code that will take it.
  /// shared: for tests, whose hosts look into it.
  enum class Backing : std::uint8_t { device, pinned, shared, counted };
  explicit Arena(Backing backing = Backing::device) : backing_(backing) {}
  /// Memory that somebody else owns: `extend` gives so many zeroed bytes at a time, aligned to 256
  /// bytes, which outlive the tensors.
  explicit Arena(std::function<void*(std::size_t bytes)> extend) : extend_(std::move(extend)) {}
  /// Of the device and registrable, one block for each use: `blocks`, the extents of an arena that
  /// counted the same tensors. What is taken beyond them gets blocks of its own. Memory that many
  /// communicators register should be in few pieces, in whole pages.
  explicit Arena(const MemoryBytes& blocks) : block_bytes_(blocks) {}
  bool has_memory() const noexcept { return backing_ != Backing::counted; }

  /// A zero-filled tensor that lives as long as the arena.
  /// @pre not sealed
  /// @throws SystemError (config) when device or host has less memory than would then be taken
  TensorView take(MemoryUse use, DType dtype, Shape shape);

  /// No more take() from here on.
  void seal() noexcept { sealed_ = true; }

  /// Calls `visit` for each tensor's memory, or each block, in the order in which they were taken;
  /// not for memory that somebody else owns, or that there is none of.
  void for_each(
      const std::function<void(MemoryUse use, void* data, std::size_t bytes)>& visit) const;

  std::size_t bytes(MemoryUse use) const noexcept { return of_use(bytes_, use); }
  std::size_t total_bytes() const noexcept;
  /// bytes() as one block: with what lies between tensors, which begin at multiples of 256.
  std::size_t extent_bytes(MemoryUse use) const noexcept { return of_use(extents_, use); }

 private:
  struct Block {
    MemoryUse use;
    Buffer memory;
    std::size_t taken = 0;
  };

  void* place(MemoryUse use, std::size_t bytes);
  void* next_counted_address() const noexcept;
  std::size_t owned_bytes() const noexcept;  ///< of blocks, in use or not
  Block& block_with_room(MemoryUse use, std::size_t bytes);
  Block& add_block(MemoryUse use, std::size_t bytes, MemoryKind kind);

  Backing backing_ = Backing::device;
  std::function<void*(std::size_t)> extend_;  ///< or empty: memory of our own
  std::optional<MemoryBytes> block_bytes_;    ///< or nothing: a block for each tensor
  std::vector<Block> blocks_;
  MemoryBytes bytes_{};
  MemoryBytes extents_{};
  bool sealed_ = false;
};

}  // namespace fourfold::device
