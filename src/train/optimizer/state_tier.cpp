// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/train/state_tier.hpp>

namespace fourfold::train {
namespace {

std::unique_ptr<io::ScratchFile> open_file(const runfile::OffloadConfig& config, bool has_memory) {
  if (config.optimizer != runfile::StateTier::nvme || !has_memory) {
    return nullptr;
  }
  try {
    io::refuse_place_in_step(config.nvme_directory);
    return std::make_unique<io::ScratchFile>(config.nvme_directory);
  } catch (const UserError& error) {
    throw UserError(error.code(),
                    format_message("offload.optimizer = \"{}\": {}",
                                   runfile::optimizer_tier_text(config), error.what()),
                    error.where());
  }
}

device::Arena host_arena(const device::Arena& device) {
  return device::Arena(device.has_memory() ? device::Arena::Backing::pinned
                                           : device::Arena::Backing::counted);
}

}  // namespace

StateTier::StateTier(const runfile::OffloadConfig& config, device::Arena& device)
    : tier_(config.optimizer),
      device_(&device),
      file_(open_file(config, device.has_memory())),
      host_(host_arena(device)),
      in_file_(file_ == nullptr ? host_arena(device)
                                : device::Arena([file = file_.get()](std::size_t bytes) -> void* {
                                    return file->extend(bytes);
                                  })) {}

device::Arena& StateTier::state() noexcept {
  switch (tier_) {
    case runfile::StateTier::none:
      return *device_;
    case runfile::StateTier::cpu:
      return host_;
    case runfile::StateTier::nvme:
      break;
  }
  return in_file_;
}

void StateTier::release(const void* begin, std::size_t bytes) const {
  if (file_ != nullptr) {
    file_->release(begin, bytes);
  }
}

}  // namespace fourfold::train
