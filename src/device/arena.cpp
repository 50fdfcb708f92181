// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/device/arena.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <numeric>

namespace fourfold::device {

namespace {

std::size_t host_memory_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                            static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

double gib(std::size_t bytes) {
  return static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0);
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
  if (bytes > host_memory_bytes() || total_bytes() + bytes > host_memory_bytes()) {
    throw SystemError(
        ExitCode::config,
        fmt::format("{} need {:.1f} GiB more beside {:.1f} GiB (this host has {:.1f} GiB) use a "
                    "smaller model, batch or context, or more ranks on more hosts",
                    name(use), gib(bytes), gib(total_bytes()), gib(host_memory_bytes())));
  }
  blocks_.emplace_back(bytes);
  bytes_[static_cast<std::size_t>(use)] += bytes;
  return {blocks_.back().data(), dtype, shape};
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
