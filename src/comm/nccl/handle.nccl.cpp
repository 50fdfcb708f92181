// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "handle.nccl.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/log.hpp>

#include <fmt/format.h>

#include <exception>
#include <tuple>
#include <utility>

namespace fourfold::comm {

NcclHandle::NcclHandle(std::string name, std::shared_ptr<NcclCalls> calls)
    : state_(std::make_unique<State>(State{.name = std::move(name), .calls = std::move(calls)})) {}

void NcclHandle::adopt() {
  FOURFOLD_EXPECT(get() != nullptr && !state_->is_adopted);
  state_->calls->adopt(state_->comm, state_->name);
  state_->is_adopted = true;
}

NcclHandle& NcclHandle::begin_child(std::string name) {
  FOURFOLD_EXPECT(state_->child == nullptr);
  state_->child = std::make_unique<NcclHandle>(std::move(name), state_->calls);
  return *state_->child;
}

NcclHandle NcclHandle::take_child() {
  FOURFOLD_EXPECT(state_->child != nullptr);
  return std::move(*std::exchange(state_->child, nullptr));
}

NcclHandle::~NcclHandle() {
  if (get() == nullptr) {
    return;
  }
  NcclCalls& calls = *state_->calls;
  calls.forget(state_->comm);
  const auto in_use = calls.use();
  const bool is_idle = state_->is_adopted && state_->child == nullptr;
  bool is_final = false;
  if (is_idle && std::uncaught_exceptions() == 0 && !calls.has_failed()) {
    try {
      calls.wait_ready(state_->comm, ncclCommFinalize(state_->comm), "ncclCommFinalize");
      is_final = true;
    } catch (const std::exception& error) {
      log::local(log::Level::warning, error.what());
    }
  }
  // Where ranks go separate ways nobody may wait for another. An abort ends what makes a child.
  std::ignore = is_final ? ncclCommDestroy(state_->comm) : ncclCommAbort(state_->comm);
}

NcclRegistration::NcclRegistration(std::shared_ptr<NcclCalls> calls) : calls_(std::move(calls)) {}

// A failure would be that of the communicator, which is known.
NcclRegistration::~NcclRegistration() {
  const auto in_use = calls_->use();
  for (const Place& place : places_) {
    std::ignore = ncclCommDeregister(place.comm, place.handle);
  }
}

void NcclRegistration::add(const NcclHandle& with, void* data, std::size_t bytes) {
  Place place{.comm = with.get()};
  const auto in_use = calls_->use();
  calls_->wait_ready(place.comm, ncclCommRegister(place.comm, data, bytes, &place.handle),
                     fmt::format("ncclCommRegister of {} bytes with '{}'", bytes, with.name()));
  places_.push_back(place);
}

}  // namespace fourfold::comm
