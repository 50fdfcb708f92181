// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/device.hpp>
#include <fourfold/device/device_memory_watch.hpp>

#include <algorithm>

namespace fourfold::device {
namespace {

constexpr std::int64_t first_looks = 3;
constexpr double look_every_s = 10;

}  // namespace

DeviceMemoryWatch::DeviceMemoryWatch() {
  look();
  before_bytes_ = used_bytes_;
  peak_bytes_ = 0;
}

void DeviceMemoryWatch::look() {
  if (!has_own_memory) {
    return;
  }
  const MemoryOwner owner = owner_of(MemoryKind::device);
  total_bytes_ = owner.total_bytes;
  used_bytes_ = owner.total_bytes - std::min(owner.free_bytes, owner.total_bytes);
  peak_bytes_ = std::max(peak_bytes_, used_bytes_ - std::min(used_bytes_, before_bytes_));
}

bool DeviceMemoryWatch::look_now_and_then(double now_s) {
  const bool is_due = looks_ < first_looks || now_s - looked_s_ >= look_every_s;
  if (!has_own_memory || !is_due) {
    return false;
  }
  ++looks_;
  looked_s_ = now_s;
  look();
  return true;
}

}  // namespace fourfold::device
