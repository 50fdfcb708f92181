// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Streams of an emulated device: queues whose work happens when somebody waits for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

namespace fourfold::emulated {

/// A piece of work, work together with other processes, a wait for another queue, or a mark that
/// others wait for.
struct Item {
  enum class Kind : std::uint8_t { device_work, host_work, meeting, wait, mark };
  Kind kind = Kind::device_work;
  std::function<void()> run = {};
  std::function<bool()> advance = {};        ///< of a meeting: does what can be done; is it over?
  std::shared_ptr<struct Queue> queue = {};  ///< of a wait
  std::size_t mark = 0;                      ///< that it waits for
  std::shared_ptr<double> time_s = {};       ///< of a mark: when it was passed
};

struct Queue {
  std::deque<Item> waiting;  ///< the first one stays until it is done
  std::size_t added = 0;
  std::size_t done = 0;
  std::shared_ptr<class Capture> capture;  ///< that records what comes, or nullptr
};

/// A point in a queue.
struct Mark {
  std::shared_ptr<Queue> queue;
  std::size_t count = 0;
  std::shared_ptr<double> time_s;  ///< when it was passed
};

std::shared_ptr<Queue> make_queue();
/// The queue of a cudaStream_t. Nothing for what is none.
std::shared_ptr<Queue> queue_of(void* stream);
void forget_queue(void* stream);

/// Or has it recorded, where the queue's stream is captured.
void enqueue(const std::shared_ptr<Queue>& queue, Item item);
Mark mark(const std::shared_ptr<Queue>& queue);
bool has_passed(const Mark& mark);

/// Does the work of `queue` up to a mark, and whatever of other queues that waits for. While other
/// processes have to do something, the other queues go on.
void run_to(const std::shared_ptr<Queue>& queue, std::size_t count);
void run(const std::shared_ptr<Queue>& queue);
void run_everything();
/// Does one piece of work, unless another thread works or it cannot be done yet; whether all was
/// done.
bool run_one(const std::shared_ptr<Queue>& queue);
/// Other processes wait for the work of this one: nothing is left for long.
void hurry();

}  // namespace fourfold::emulated
