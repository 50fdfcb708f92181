// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "queues.hpp"

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

/// A GPU does not wait for the host to look at it: what nobody waits for happens after a while.
void go_on_alone() {
  constexpr double patience_s = 0.1;
  while (true) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
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

void do_work(const Item& item, Open& memory) {
  if (item.kind == Item::Kind::host_work) {
    const DeviceMemory::Closed closed;
    item.run();
  } else {
    memory.ensure();
    item.run();
  }
}

/// The next piece of work before `count`. Nothing when all of that is done.
bool take(const std::shared_ptr<Queue>& queue, std::size_t count, Item& item) {
  const std::scoped_lock lock(state());
  if (queue->done >= count || queue->waiting.empty()) {
    return false;
  }
  item = std::move(queue->waiting.front());
  queue->waiting.pop_front();
  return true;
}

void finish(const std::shared_ptr<Queue>& queue, const Item& item, Open& memory) {
  if (item.kind == Item::Kind::wait) {
    run_to(item.queue, item.mark);
  } else if (item.kind == Item::Kind::mark) {
    *item.time_s = now_s();
  } else {
    do_work(item, memory);
  }
  const std::scoped_lock lock(state());
  ++queue->done;
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
  last_call_s = now_s();
  {
    const std::scoped_lock lock(state());
    queue->waiting.push_back(std::move(item));
    ++queue->added;
  }
  if (is_eager()) {
    run(queue);
  }
}

Mark mark(const std::shared_ptr<Queue>& queue) {
  auto time_s = std::make_shared<double>(0);
  enqueue(queue, {.kind = Item::Kind::mark, .time_s = time_s});
  const std::scoped_lock lock(state());
  return {queue, queue->added, time_s};
}

void run_to(const std::shared_ptr<Queue>& queue, std::size_t count) {
  last_call_s = now_s();
  const std::scoped_lock lock(engine());
  Open memory;
  for (Item item; take(queue, count, item);) {
    finish(queue, item, memory);
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
  const std::scoped_lock lock(engine());
  std::size_t done = 0;
  std::size_t added = 0;
  {
    const std::scoped_lock state_lock(state());
    done = queue->done;
    added = queue->added;
  }
  if (done < added) {
    run_to(queue, done + 1);
  }
  return done >= added;
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

void launch(void* stream, std::function<void()> kernel) {
  enqueue(queue_of(stream), {.kind = Item::Kind::device_work, .run = std::move(kernel)});
}

bool is_device_memory(const void* address) {
  return DeviceMemory::get().contains(address);
}

}  // namespace fourfold::emulated
