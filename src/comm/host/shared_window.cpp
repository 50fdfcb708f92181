// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "shared_window.hpp"

#include <fourfold/base/contract.hpp>

#include <algorithm>
#include <new>

namespace fourfold::comm {
namespace {

constexpr std::size_t page_bytes = 4096;
/// Two, since processors fetch lines in pairs.
constexpr std::size_t counter_bytes = 128;
constexpr std::size_t largest_area_bytes = 256 * 1024;
constexpr std::size_t smallest_area_bytes = 16 * 1024;
/// Of a window of many ranks, about.
constexpr std::size_t most_bytes = std::size_t{64} << 20;

std::size_t counters_bytes(int ranks) {
  const std::size_t bytes =
      static_cast<std::size_t>(ranks) * SharedWindow::stage_count * counter_bytes;
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace

std::size_t SharedWindow::area_bytes(int ranks) noexcept {
  const std::size_t share = most_bytes / (slots * static_cast<std::size_t>(ranks));
  return std::clamp(share / page_bytes * page_bytes, smallest_area_bytes, largest_area_bytes);
}

std::size_t SharedWindow::memory_bytes(int ranks) noexcept {
  return counters_bytes(ranks) + slots * static_cast<std::size_t>(ranks) * area_bytes(ranks);
}

SharedWindow::SharedWindow(std::unique_ptr<SharedMemory> memory, int rank, int ranks)
    : memory_(std::move(memory)), rank_(rank), ranks_(ranks), area_bytes_(area_bytes(ranks)) {
  FOURFOLD_EXPECT(rank >= 0 && rank < ranks);
}

/// Zero bytes are a counter at zero, so none has to be made.
SharedWindow::Counter& SharedWindow::counter(Stage stage, int rank) const noexcept {
  std::byte* const place =
      memory_->data() +
      static_cast<std::size_t>(rank * stage_count + static_cast<int>(stage)) * counter_bytes;
  return *std::launder(reinterpret_cast<Counter*>(place));
}

std::byte* SharedWindow::area(int rank, std::int64_t step) const noexcept {
  const std::size_t slot = (first_step_ + static_cast<std::uint64_t>(step)) % slots;
  const std::size_t index =
      slot * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(rank);
  return memory_->data() + counters_bytes(ranks_) + index * area_bytes_;
}

bool SharedWindow::all_have(Stage stage, std::int64_t step) const noexcept {
  // Steps before the first of all are as good as done.
  const std::int64_t wanted = static_cast<std::int64_t>(first_step_) + step + 1;
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto reached =
        static_cast<std::int64_t>(counter(stage, rank).load(std::memory_order_acquire));
    if (reached < wanted) {
      return false;
    }
  }
  return true;
}

void SharedWindow::tell(Stage stage, std::int64_t step) noexcept {
  counter(stage, rank_)
      .store(first_step_ + static_cast<std::uint64_t>(step) + 1, std::memory_order_release);
}

void SharedWindow::end_turn(std::int64_t steps) noexcept {
  first_step_ += static_cast<std::uint64_t>(steps);
  ++turn_;
}

std::unique_ptr<SharedWindow> open_window(Endpoint& endpoint, Communicator& messages) {
  const int ranks = endpoint.size();
  // Equal on all if the largest is the smallest.
  const std::int64_t domain = endpoint.memory_domain();
  std::int64_t ends[2] = {domain, ~domain};
  messages.all_reduce({ends, {2}}, ReduceOp::max, {}).wait({});
  if (ends[0] != ~ends[1]) {
    return nullptr;
  }
  const std::size_t bytes = SharedWindow::memory_bytes(ranks);
  MemoryOffer offer;
  std::unique_ptr<SharedMemory> memory;
  if (endpoint.rank() == 0) {
    memory = endpoint.make_memory(bytes, offer);
  }
  messages.broadcast({reinterpret_cast<std::uint8_t*>(&offer), {sizeof(offer)}}, 0, {}).wait({});
  if (endpoint.rank() != 0) {
    memory = endpoint.find_memory(bytes, offer);
  }
  const std::int64_t found =
      all_reduce_scalar(messages, std::int64_t{memory != nullptr}, ReduceOp::min);
  if (found == 0) {
    return nullptr;
  }
  memory->close_offer();
  return std::make_unique<SharedWindow>(std::move(memory), endpoint.rank(), ranks);
}

bool SharedSteps::may_put() const noexcept {
  return put_ < plan_.steps &&
         window_.all_have(SharedWindow::Stage::done, put_ - SharedWindow::slots);
}

/// Puts, uses and finishes at most one step each. Returns whether anything was done.
bool SharedSteps::advance_once() {
  using enum SharedWindow::Stage;
  bool moved = false;
  if (may_put()) {
    plan_.put(put_);
    window_.tell(put, put_++);
    moved = true;
  }
  if (used_ < put_ && window_.all_have(put, used_)) {
    plan_.use(used_);
    window_.tell(used, used_);
    if (!plan_.finish) {
      window_.tell(done, used_);
      ++finished_;
    }
    ++used_;
    moved = true;
  }
  if (finished_ < used_ && window_.all_have(used, finished_)) {
    plan_.finish(finished_);
    window_.tell(done, finished_++);
    moved = true;
  }
  return moved;
}

bool SharedSteps::advance() {
  if (!window_.is_turn(turn_)) {
    return false;
  }
  bool moved = false;
  while (finished_ < plan_.steps && advance_once()) {
    moved = true;
  }
  if (moved) {
    window_.wake_others();
  }
  if (finished_ < plan_.steps) {
    return false;
  }
  window_.end_turn(plan_.steps);
  return true;
}

}  // namespace fourfold::comm
