// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// NVTX 3 is headers alone: they look for the library of a profiler that started this process, once.
#include <fourfold/device/range.hpp>

#include <nvtx3/nvToolsExt.h>

namespace fourfold::device {
namespace {

/// Null where nobody looks, at this process or at this domain.
nvtxDomainHandle_t domain() noexcept {
  static const nvtxDomainHandle_t made = nvtxDomainCreateA("fourfold");
  return made;
}

}  // namespace

bool has_profiler() noexcept {
  return domain() != nullptr;
}

void Range::open(const std::string& name) noexcept {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = name.c_str();  // which is copied
  nvtxDomainRangePushEx(domain(), &event);
  is_open_ = true;
}

void Range::close() noexcept {
  nvtxDomainRangePop(domain());
}

}  // namespace fourfold::device
