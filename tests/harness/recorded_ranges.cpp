// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// What NVTX calls "static injection": it finds InitializeInjectionNvtx2_fnptr in the program.
#define NVTX_NO_IMPL
#include "recorded_ranges.hpp"

#include <nvtx3/nvToolsExt.h>

#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace fourfold::harness {
namespace {

class Recorder {
 public:
  static Recorder& get() {
    static auto* const recorder = new Recorder;
    return *recorder;
  }

  int push(const char* name) {
    const std::scoped_lock lock(mutex_);
    const auto thread =
        threads_.try_emplace(std::this_thread::get_id(), threads_.size()).first->second;
    std::vector<std::size_t>& open = open_[thread];
    RecordedRange range{.thread = thread, .name = name, .within = {}};
    for (const std::size_t outer : open) {
      range.within.push_back(ranges_[outer].name);
    }
    open.push_back(ranges_.size());
    ranges_.push_back(std::move(range));
    return static_cast<int>(open.size()) - 1;
  }

  int pop() {
    const std::scoped_lock lock(mutex_);
    std::vector<std::size_t>& open = open_[threads_.at(std::this_thread::get_id())];
    ranges_[open.back()].is_over = true;
    open.pop_back();
    return static_cast<int>(open.size());
  }

  std::vector<RecordedRange> take() {
    const std::scoped_lock lock(mutex_);
    open_.clear();
    return std::exchange(ranges_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<RecordedRange> ranges_;
  std::map<std::thread::id, std::size_t> threads_;
  std::map<std::size_t, std::vector<std::size_t>> open_;  ///< by thread, indices into ranges_
};

nvtxDomainHandle_t create_domain(const char* name) {
  static char ours = 0;
  return std::strcmp(name, "fourfold") == 0 ? reinterpret_cast<nvtxDomainHandle_t>(&ours) : nullptr;
}
int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  const bool is_ours = domain != nullptr && event->messageType == NVTX_MESSAGE_TYPE_ASCII;
  return is_ours ? Recorder::get().push(event->message.ascii) : -1;
}
int pop(nvtxDomainHandle_t domain) {
  return domain != nullptr ? Recorder::get().pop() : -1;
}

int NVTX_API attach(NvtxGetExportTableFunc_t tables) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0 ||
      size <= NVTX_CBID_CORE2_DomainCreateA) {
    return 0;
  }
  *table[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(create_domain);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(push);
  *table[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}

}  // namespace

std::string RecordedRange::path() const {
  std::string text;
  for (const std::string& outer : within) {
    text += outer + " > ";
  }
  return text + name;
}

std::vector<RecordedRange> take_recorded_ranges() {
  return Recorder::get().take();
}

}  // namespace fourfold::harness

extern "C" {
extern NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr;
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = fourfold::harness::attach;
}
