// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "queues.hpp"

#include "call_result.hpp"
#include "capture.hpp"
#include "device_memory.hpp"
#include "emulated_gpu.hpp"

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

namespace fourfold::emulated {
namespace {

using Clock = std::chrono::steady_clock;

double now_s() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// Held while work is done: one device, one piece of work at a time.
std::recursive_mutex& engine() {
  static auto* const mutex = new std::recursive_mutex;
  return *mutex;
}
/// Held for a moment, while queues are looked at.
std::mutex& state() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}
std::map<void*, std::shared_ptr<Queue>>& queues() {
  static auto* const all = new std::map<void*, std::shared_ptr<Queue>>;
  return *all;
}
std::atomic<double> last_call_s = 0;
std::atomic<double> patience_s = 0.1;

/// A GPU does not wait for the host to look at it: what nobody waits for happens after a while.
void go_on_alone() {
  while (true) {
    std::this_thread::sleep_for(std::chrono::duration<double>(patience_s / 5));
    if (now_s() - last_call_s > patience_s) {
      run_everything();
    }
  }
}

bool is_eager() {
  static const bool eager = std::getenv("FOURFOLD_EMULATED_GPU_EAGER") != nullptr;
  return eager;
}

/// Device memory, open while a row of work is done.
class Open {
 public:
  Open() = default;
  ~Open() {
    if (is_open_) {
      DeviceMemory::get().close();
    }
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  void ensure() {
    if (!is_open_) {
      DeviceMemory::get().open();
      is_open_ = true;
    }
  }

 private:
  bool is_open_ = false;
};

/// What is done while nothing can be done: for longer and longer, since what is waited for may need
/// this core.
class Pause {
 public:
  void take() {
    std::this_thread::sleep_for(next_);
    next_ = std::min(2 * next_, std::chrono::microseconds(800));
  }

 private:
  std::chrono::microseconds next_{50};
};

/// The first item of a queue; nullptr when there is none.
Item* first_of(const std::shared_ptr<Queue>& queue) {
  const std::scoped_lock lock(state());
  return queue->waiting.empty() ? nullptr : &queue->waiting.front();
}

bool is_done(const std::shared_ptr<Queue>& queue, std::size_t count) {
  const std::scoped_lock lock(state());
  return queue->done >= count;
}

/// Does an item, as far as that goes without waiting. Whether it is done.
bool do_item(Item& item, Open& memory) {
  switch (item.kind) {
    case Item::Kind::wait:
      return is_done(item.queue, item.mark);
    case Item::Kind::mark:
      *item.time_s = now_s();
      return true;
    case Item::Kind::meeting:
      memory.ensure();
      return item.advance();
    case Item::Kind::host_work: {
      const DeviceMemory::Closed closed;
      item.run();
      return true;
    }
    case Item::Kind::device_work:
      memory.ensure();
      item.run();
  }
  return true;
}

/// Whether the first item of the queue is done now.
bool do_first(const std::shared_ptr<Queue>& queue, Open& memory) {
  Item* const item = first_of(queue);
  if (item == nullptr || !do_item(*item, memory)) {
    return false;
  }
  Item done;  // what it holds is given back outside of the lock
  const std::scoped_lock lock(state());
  done = std::move(queue->waiting.front());
  queue->waiting.pop_front();
  ++queue->done;
  return true;
}

/// What a device does while one of its streams waits for another machine.
void go_on_elsewhere(Open& memory, Pause& pause) {
  std::map<void*, std::shared_ptr<Queue>> all;
  {
    const std::scoped_lock lock(state());
    all = queues();
  }
  bool moved = false;
  for (const auto& [stream, queue] : all) {
    moved = do_first(queue, memory) || moved;
  }
  if (moved) {
    pause = {};
  } else {
    pause.take();
  }
}

}  // namespace

std::shared_ptr<Queue> make_queue() {
  static std::once_flag once;
  std::call_once(once, [] { std::thread(go_on_alone).detach(); });
  auto queue = std::make_shared<Queue>();
  const std::scoped_lock lock(state());
  queues()[queue.get()] = queue;
  return queue;
}

std::shared_ptr<Queue> queue_of(void* stream) {
  if (stream == nullptr) {
    static const std::shared_ptr<Queue> default_queue = make_queue();
    return default_queue;
  }
  const std::scoped_lock lock(state());
  const auto found = queues().find(stream);
  return found == queues().end() ? nullptr : found->second;
}

void forget_queue(void* stream) {
  const std::scoped_lock lock(state());
  queues().erase(stream);
}

void enqueue(const std::shared_ptr<Queue>& queue, Item item) {
  if (queue->capture != nullptr) {
    queue->capture->add(queue.get(), std::move(item));
    return;
  }
  last_call_s = now_s();
  {
    const std::scoped_lock lock(state());
    queue->waiting.push_back(std::move(item));
    ++queue->added;
  }
  if (is_eager()) {
    const std::scoped_lock lock(engine());
    Open memory;
    while (do_first(queue, memory)) {
    }
  }
}

bool has_passed(const Mark& mark) {
  return mark.queue == nullptr || is_done(mark.queue, mark.count);
}

Mark mark(const std::shared_ptr<Queue>& queue) {
  auto time_s = std::make_shared<double>(0);
  enqueue(queue, {.kind = Item::Kind::mark, .time_s = time_s});
  const std::scoped_lock lock(state());
  return {queue, queue->added, time_s};
}

void run_to(const std::shared_ptr<Queue>& queue, std::size_t count) {
  last_call_s = now_s();
  std::unique_lock lock(engine(), std::defer_lock);
  // Who has it may wait for another machine, which waits for what the caller does next. It goes on
  // with all queues meanwhile.
  Pause pause;
  while (!lock.try_lock()) {
    if (is_done(queue, count)) {
      return;
    }
    pause.take();
  }
  Open memory;
  pause = {};
  while (!is_done(queue, count)) {
    if (do_first(queue, memory)) {
      pause = {};
      continue;
    }
    const Item* const first = first_of(queue);
    if (first == nullptr) {
      return;
    }
    if (first->kind == Item::Kind::wait) {
      const std::shared_ptr<Queue> awaited = first->queue;  // the item may be done meanwhile
      run_to(awaited, first->mark);
    } else {
      go_on_elsewhere(memory, pause);
    }
  }
}

void run(const std::shared_ptr<Queue>& queue) {
  std::size_t added = 0;
  {
    const std::scoped_lock lock(state());
    added = queue->added;
  }
  run_to(queue, added);
}

bool run_one(const std::shared_ptr<Queue>& queue) {
  std::size_t added = 0;
  {
    const std::scoped_lock lock(state());
    added = queue->added;
  }
  if (is_done(queue, added)) {
    return true;
  }
  const std::unique_lock lock(engine(), std::try_to_lock);
  if (lock.owns_lock()) {
    Open memory;
    const Item* const first = first_of(queue);
    if (first != nullptr && first->kind == Item::Kind::wait &&
        !is_done(first->queue, first->mark)) {
      const std::shared_ptr<Queue> awaited = first->queue;
      run_one(awaited);
    }
    do_first(queue, memory);
  }
  return false;
}

void run_everything() {
  std::map<void*, std::shared_ptr<Queue>> all;
  {
    const std::scoped_lock lock(state());
    all = queues();
  }
  for (const auto& [stream, queue] : all) {
    run(queue);
  }
}

void hurry() {
  patience_s = 0.004;
}

void launch(void* stream, std::function<void()> kernel) {
  cudaError_t why_not = planned_failure("cudaLaunchKernel");
  if (why_not != cudaSuccess || queue_for_work(stream, why_not) == nullptr) {
    static_cast<void>(note(why_not));
    return;
  }
  enqueue(queue_of(stream), {.kind = Item::Kind::device_work, .run = std::move(kernel)});
}

bool is_device_memory(const void* address) {
  return DeviceMemory::get().contains(address);
}

}  // namespace fourfold::emulated
