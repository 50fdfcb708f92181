// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <algorithm>
#include <bit>
#include <exception>
#include <utility>

namespace fourfold::comm {

std::shared_ptr<std::byte> Progress::take_scratch(std::size_t bytes) {
  // Powers of two, so that a block fits again soon.
  const std::size_t rounded = std::bit_ceil(std::max<std::size_t>(bytes, 256));
  device::Buffer block;
  if (auto found = free_scratch_.extract(rounded)) {
    block = std::move(found.mapped());
  } else {
    block = device::Buffer(rounded, device::MemoryKind::host);
  }
  const auto owner = std::shared_ptr<device::Buffer>(
      new device::Buffer(std::move(block)), [this](device::Buffer* back) {
        const std::unique_ptr<device::Buffer> owned(back);
        free_scratch_.emplace(back->bytes(), std::move(*back));
      });
  return {owner, static_cast<std::byte*>(owner->data())};
}

/// An operation that is not finished and the Work that somebody holds for it.
class Progress::Pending : public Work::Operation {
 public:
  Pending(Progress& progress, CollectiveTask task, std::string what, std::uint64_t number)
      : progress_(progress), task_(std::move(task)), what_(std::move(what)), number_(number) {
    progress_.pending_.push_back(this);
  }
  ~Pending() override { std::erase(progress_.pending_, this); }

  void wait(device::StreamRef /*stream*/) override {
    if (!finished_) {
      progress_.recorder_.wait_for(number_);
      progress_.run(task_, what_);
      progress_.recorder_.wait_over();
      finish();
    }
  }

  bool test() override {
    progress_.advance_others(nullptr);
    return finished_;
  }

  void advance() {
    if (!finished_ && task_()) {
      finish();
    }
  }
  const CollectiveTask* task() const noexcept { return &task_; }

 private:
  void finish() {
    finished_ = true;
    progress_.recorder_.leave(number_);
  }

  Progress& progress_;
  CollectiveTask task_;
  std::string what_;
  std::uint64_t number_;  ///< of the flight recorder
  bool finished_ = false;
};

Work Progress::launch(CollectiveTask task, std::string what, std::uint64_t number) {
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  try {
    if (task()) {
      recorder_.leave(number);
      return {};
    }
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
  return Work(std::make_unique<Pending>(*this, std::move(task), std::move(what), number));
}

void Progress::run(const CollectiveTask& task, const std::string& what) {
  for (;;) {
    const std::uint64_t seen = changes();
    advance_others(&task);
    try {
      if (task()) {
        return;
      }
      pause(seen, what);
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
  }
}

void Progress::advance_others(const CollectiveTask* except) {
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  try {
    for (Pending* operation : pending_) {
      if (operation->task() != except) {
        operation->advance();
      }
    }
  } catch (...) {
    // Whoever caught this might go on with data that never arrived; every later call fails too.
    failure_ = std::current_exception();
    throw;
  }
}

}  // namespace fourfold::comm
