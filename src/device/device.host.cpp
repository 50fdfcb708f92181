// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "host_bytes.hpp"

#include <fourfold/device/device.hpp>
#include <fourfold/device/range.hpp>

namespace fourfold::device {

const bool has_own_memory = false;

bool is_only_for_device(const void* /*data*/) {
  return false;
}

void load_kernels_first() {}

DeviceFacts take_device(const DevicePlace& /*place*/) {
  return device_facts();
}

DeviceFacts device_facts() {
  DeviceFacts facts;
  facts.name = "CPU";
  facts.total_bytes = owner_of(MemoryKind::host).total_bytes;
  return facts;
}

MemoryOwner owner_of(MemoryKind /*kind*/) {
  return host_owner();
}

bool has_profiler() noexcept {
  return false;
}

void Range::open(const std::string& /*name*/) noexcept {}
void Range::close() noexcept {}

}  // namespace fourfold::device
