// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "calls.nccl.hpp"

#include "check.nccl.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/fatal_exit.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace fourfold::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto between_looks = 100ms;
/// The watch of the run knows who died, not only who noticed; it takes some ten seconds.
constexpr auto for_the_watch_to_end_it = 20s;

}  // namespace

std::shared_ptr<DeviceCall> SpareCalls::take(const std::shared_ptr<SpareCalls>& pool) {
  std::unique_ptr<DeviceCall> call;
  {
    const std::scoped_lock lock(pool->mutex_);
    if (!pool->spare_.empty()) {
      call = std::move(pool->spare_.back());
      pool->spare_.pop_back();
    }
  }
  if (!call) {
    call = std::make_unique<DeviceCall>();
  }
  call->has_begun = false;
  return {call.release(), [pool](DeviceCall* done) {
            const std::scoped_lock lock(pool->mutex_);
            pool->spare_.emplace_back(done);
          }};
}

NcclCalls::NcclCalls(FlightRecorder& recorder, double deadline_s)
    : recorder_(&recorder), deadline_(deadline_s) {
  watcher_ = std::thread([this, rank = rank_identity()] {
    log::set_thread_rank(rank.rank, rank.size);
    watch();
  });
}

NcclCalls::~NcclCalls() {
  is_over_ = true;
  watcher_.join();
}

void NcclCalls::wait_ready(ncclComm_t comm, ncclResult_t result, const std::string& what) {
  const auto in_use = use();
  const Clock::time_point began = Clock::now();
  // ncclCommSplit() returns ncclSuccess for what has only begun: only the communicator knows.
  result = result == ncclSuccess ? ncclInProgress : result;
  while (result == ncclInProgress) {
    check_nccl(ncclCommGetAsyncError(comm, &result), "ncclCommGetAsyncError", comm);
    if (result == ncclInProgress && Clock::now() - began > deadline_) {
      throw SystemError(
          ExitCode::hang,
          format_message("NCCL: {} has not come to an end in {:.0f} s (some rank has "
                         "not come, or cannot be reached); NCCL_DEBUG=INFO says which "
                         "connections are made, NCCL_SOCKET_IFNAME names the network",
                         what, deadline_.count()));
    }
    std::this_thread::yield();
  }
  check(comm, result, what);
}

std::optional<ncclResult_t> NcclCalls::error_of(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
  const ncclResult_t result = asked != ncclSuccess ? asked : state;
  return result == ncclSuccess || result == ncclInProgress ? std::nullopt : std::optional(result);
}

void NcclCalls::check(ncclComm_t comm, ncclResult_t result, const std::string& what) {
  if (result == ncclSuccess || result == ncclInProgress) {
    return;
  }
  if (const auto error = error_of(comm)) {
    note_failure(nccl_failure(*error, what, comm));
    require_none_failed();
  }
  check_nccl(result, what, comm);
}

void NcclCalls::adopt(ncclComm_t comm, const std::string& name) {
  const std::scoped_lock lock(mutex_);
  adopted_.push_back({comm, name});
}

void NcclCalls::forget(ncclComm_t comm) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(adopted_, [comm](const Adopted& one) { return one.comm == comm; });
}

std::shared_ptr<DeviceCall> NcclCalls::begin(std::size_t group, const Call& call,
                                             device::StreamRef stream) {
  require_none_failed();
  auto result = SpareCalls::take(spare_);
  result->number = recorder_->enter(group, call);
  result->record = recorder_->record_of(result->number);
  result->begun.record(stream);
  return result;
}

void NcclCalls::end(const std::shared_ptr<DeviceCall>& call, device::StreamRef stream) {
  call->ended.record(stream);
  const std::scoped_lock lock(mutex_);
  in_flight_.push_back(call);
}

void NcclCalls::require_none_failed() const {
  if (!has_failed_) {
    return;
  }
  std::unique_lock lock(failure_mutex_);
  const std::string text = failure_;
  const auto until = failed_ + for_the_watch_to_end_it;
  lock.unlock();
  std::this_thread::sleep_until(until);
  throw SystemError(ExitCode::node_fault, text);
}

void NcclCalls::note_failure(const std::string& text) {
  {
    const std::scoped_lock lock(failure_mutex_);
    if (has_failed_) {
      return;
    }
    failure_ = text;
    failed_ = Clock::now();
    has_failed_ = true;
  }
  recorder_->set_fault(text);
  log::local(log::Level::error, text);
}

std::string NcclCalls::failure() const {
  const std::scoped_lock lock(failure_mutex_);
  return failure_;
}

NcclCalls::Clock::duration NcclCalls::since_failure() const {
  const std::scoped_lock lock(failure_mutex_);
  return Clock::now() - failed_;
}

void NcclCalls::look_at_calls() {
  const std::scoped_lock lock(mutex_);
  const DeviceCall* executing = nullptr;
  for (const auto& call : in_flight_) {
    if (!call->has_begun && call->begun.has_happened()) {
      call->has_begun = true;
      call->record.entered = FlightRecord::Clock::now();
    }
  }
  const auto is_done = [this](const std::shared_ptr<DeviceCall>& call) {
    if (call->has_begun && call->ended.has_happened()) {
      recorder_->leave(call->number);
      return true;
    }
    return false;
  };
  in_flight_.erase(std::remove_if(in_flight_.begin(), in_flight_.end(), is_done), in_flight_.end());
  for (const auto& call : in_flight_) {
    if (call->has_begun &&
        (executing == nullptr || call->record.entered < executing->record.entered)) {
      executing = call.get();
    }
  }
  if (executing == nullptr) {
    recorder_->device_wait_over();
  } else {
    recorder_->device_waits_for(executing->record);
  }
}

void NcclCalls::look_for_errors() {
  const std::unique_lock in_use(using_nccl_, std::try_to_lock);
  if (!in_use) {  // who is in a call sees errors there
    return;
  }
  const std::scoped_lock lock(mutex_);
  for (const Adopted& one : adopted_) {
    if (const auto error = error_of(one.comm)) {
      note_failure(nccl_failure(*error, format_message("communicator '{}'", one.name), one.comm));
      return;
    }
  }
}

void NcclCalls::watch() {
  while (!is_over_) {
    std::this_thread::sleep_for(between_looks);
    try {
      look_at_calls();
      look_for_errors();
    } catch (const std::exception& error) {  // the device itself
      note_failure(error.what());
    }
    if (has_failed_ && since_failure() > for_the_watch_to_end_it + 5s) {
      // The rank's own thread is in a wait that ends no more.
      tell_fatal_exit(ExitCode::node_fault, failure());
      if (rank_identity().end_all_ranks != nullptr) {
        rank_identity().end_all_ranks(ExitCode::node_fault);
      }
      ::_exit(static_cast<int>(ExitCode::node_fault));
    }
  }
}

}  // namespace fourfold::comm
