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

std::size_t counters_bytes(std::size_t ranks) {
  const std::size_t bytes = ranks * SharedWindow::stage_count * counter_bytes;
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace

std::size_t SharedWindow::area_bytes(std::size_t ranks) noexcept {
  const std::size_t share = most_bytes / (slots * ranks);
  return std::clamp(share / page_bytes * page_bytes, smallest_area_bytes, largest_area_bytes);
}

std::size_t SharedWindow::memory_bytes(std::size_t ranks) noexcept {
  return counters_bytes(ranks) + slots * ranks * area_bytes(ranks);
}

SharedWindow::SharedWindow(SharedMemory memory, int rank, int ranks)
    : memory_(std::move(memory)), rank_(rank), ranks_(ranks), area_bytes_(area_bytes(ranks)) {
  FOURFOLD_EXPECT(rank >= 0 && rank < ranks);
}

/// Zero bytes are a counter at zero, so none has to be made.
SharedWindow::Counter& SharedWindow::counter(Stage stage, int rank) const noexcept {
  const std::size_t index = rank * stage_count + static_cast<int>(stage);
  std::byte* const place = memory_.data.get() + index * counter_bytes;
  return *std::launder(reinterpret_cast<Counter*>(place));
}

std::byte* SharedWindow::area(int rank, std::int64_t step) const noexcept {
  const std::size_t index = (first_step_ + step) % slots * ranks_ + rank;
  return memory_.data.get() + counters_bytes(ranks_) + index * area_bytes_;
}

bool SharedWindow::all_have(Stage stage, std::int64_t step) const noexcept {
  // Steps before the first of all are as good as done.
  const std::int64_t wanted = first_step_ + step + 1;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (counter(stage, rank).load(std::memory_order_acquire) < wanted) {
      return false;
    }
  }
  return true;
}

void SharedWindow::tell(Stage stage, std::int64_t step) noexcept {
  counter(stage, rank_).store(first_step_ + step + 1, std::memory_order_release);
}

void SharedWindow::end_turn(std::int64_t steps) noexcept {
  first_step_ += steps;
  ++turn_;
}

std::unique_ptr<SharedWindow> open_window(Transport& transport, Communicator& messages) {
  const int ranks = transport.size();
  // Equal on all if the largest is the smallest.
  const std::int64_t domain = transport.memory_domain();
  std::int64_t ends[2] = {domain, ~domain};
  messages.all_reduce({ends, {2}}, ReduceOp::max, {}).wait({});
  if (ends[0] != ~ends[1]) {
    return nullptr;
  }
  const std::size_t bytes = SharedWindow::memory_bytes(ranks);
  MemoryOffer offer;
  std::optional<SharedMemory> memory;
  if (transport.rank() == 0) {
    memory = transport.make_memory(bytes, offer);
  }
  messages.broadcast({&offer, DType::u8, {sizeof(offer)}}, 0, {}).wait({});
  if (transport.rank() != 0) {
    memory = transport.find_memory(bytes, offer);
  }
  const std::int64_t found = memory.has_value();
  if (all_reduce_scalar(messages, found, ReduceOp::min) == 0) {
    return nullptr;
  }
  memory->offered.reset();
  return std::make_unique<SharedWindow>(std::move(*memory), transport.rank(), ranks);
}

CollectiveTask in_turn(SharedWindow& window, std::uint64_t turn, std::int64_t steps, SharedStep put,
                       SharedStep use, SharedStep finish) {
  using Stage = SharedWindow::Stage;
  // Steps that this rank has put, used and finished.
  return [&window, turn, steps, put = std::move(put), use = std::move(use),
          finish = std::move(finish), has_put = std::int64_t{0}, has_used = std::int64_t{0},
          has_finished = std::int64_t{0}]() mutable {
    if (!window.is_turn(turn)) {
      return false;
    }
    bool has_told = false;
    for (bool moved = true; moved && has_finished < steps; has_told = has_told || moved) {
      moved = false;
      if (has_put < steps && window.all_have(Stage::done, has_put - SharedWindow::slots)) {
        put(has_put);
        window.tell(Stage::put, has_put++);
        moved = true;
      }
      if (has_used < has_put && window.all_have(Stage::put, has_used)) {
        use(has_used);
        window.tell(Stage::used, has_used);
        if (!finish) {
          window.tell(Stage::done, has_used);
          ++has_finished;
        }
        ++has_used;
        moved = true;
      }
      if (has_finished < has_used && window.all_have(Stage::used, has_finished)) {
        finish(has_finished);
        window.tell(Stage::done, has_finished++);
        moved = true;
      }
    }
    if (has_told) {
      window.wake_others();
    }
    if (has_finished < steps) {
      return false;
    }
    window.end_turn(steps);
    return true;
  };
}

}  // namespace fourfold::comm
