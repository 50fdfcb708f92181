// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What is owned of NCCL: a communicator, and memory that is registered with some.
#pragma once

#include "calls.nccl.hpp"

#include <fourfold/comm/communicator.hpp>

#include <nccl.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace fourfold::comm {

/// Owns an ncclComm_t from before NCCL begins to make it, in the background: what NCCL reads of us
/// and writes to us meanwhile stays where it is however the handle is moved. Gives it back by a
/// finalize that all its ranks call, or, when something has failed, by an abort.
class NcclHandle {
 public:
  NcclHandle() = default;
  /// Of none, until NCCL has put one at place().
  NcclHandle(std::string name, std::shared_ptr<NcclCalls> calls);
  ~NcclHandle();
  NcclHandle(NcclHandle&&) noexcept = default;
  NcclHandle& operator=(NcclHandle&&) = delete;

  ncclComm_t get() const noexcept { return state_ ? state_->comm : nullptr; }
  ncclComm_t* place() const noexcept { return &state_->comm; }
  /// For ncclConfig_t::commName, which NCCL keeps as a pointer.
  const char* name() const noexcept { return state_->name.c_str(); }
  /// It is there: from here on its NcclCalls looks after it. @pre get() is one
  void adopt();

  /// A handle for a child that is being split off. It ends with this one, after it: NCCL writes to
  /// its place until the parent is ready again or aborted.
  NcclHandle& begin_child(std::string name);
  /// Once the parent is ready again.
  NcclHandle take_child();

 private:
  struct State {
    std::string name;
    std::shared_ptr<NcclCalls> calls;
    ncclComm_t comm = nullptr;
    bool is_adopted = false;
    std::unique_ptr<NcclHandle> child = nullptr;
  };
  std::unique_ptr<State> state_;
};

/// Memory registered with one communicator or several; all outlive it.
class NcclRegistration : public RegisteredMemory {
 public:
  explicit NcclRegistration(std::shared_ptr<NcclCalls> calls);
  ~NcclRegistration() override;
  NcclRegistration(const NcclRegistration&) = delete;
  NcclRegistration& operator=(const NcclRegistration&) = delete;

  void add(const NcclHandle& with, void* data, std::size_t bytes);

 private:
  struct Place {
    ncclComm_t comm = nullptr;
    void* handle = nullptr;
  };
  std::shared_ptr<NcclCalls> calls_;
  std::vector<Place> places_;
};

}  // namespace fourfold::comm
