// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/arena.hpp>
#include <fourfold/io/scratch_file.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <cstddef>
#include <memory>

namespace fourfold::train {

/// Where the f32 masters and the optimizer's moments of a rank lie: in device memory, in that of
/// the host, or in a file (offload.optimizer).
class StateTier {
 public:
  /// @param device  the rank's arena; what only counts has neither host memory nor file
  /// @throws UserError when there is no such directory, or nothing can be written there
  StateTier(const runfile::OffloadConfig& config, device::Arena& device);

  bool is_offloaded() const noexcept { return tier_ != runfile::StateTier::none; }
  runfile::StateTier tier() const noexcept { return tier_; }
  /// Where the state is taken from.
  device::Arena& state() noexcept;
  /// Host memory that an offloaded update needs beside it; offloaded activations take theirs here
  /// too (offload.activations).
  device::Arena& host() noexcept { return host_; }
  /// For nvme, unless the device's arena only counts; else nullptr.
  const io::ScratchFile* file() const noexcept { return file_.get(); }

  std::size_t host_bytes() const noexcept { return host_.total_bytes(); }
  /// Of them, activations.
  std::size_t host_activation_bytes() const noexcept {
    return host_.bytes(device::MemoryUse::activations);
  }
  std::size_t file_bytes() const noexcept { return in_file_.total_bytes(); }

  /// Lets go of memory that was read or written at its address, where it is a window on the file.
  void release(const void* begin, std::size_t bytes) const;

 private:
  runfile::StateTier tier_;
  device::Arena* device_;
  std::unique_ptr<io::ScratchFile> file_;
  device::Arena host_;
  device::Arena in_file_;
};

}  // namespace fourfold::train
