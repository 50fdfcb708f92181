// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A device, in place of the host's, whose streams are as late as they are allowed to be: what is
/// enqueued on a stream of one's own happens only when the default stream waits for an event behind
/// it. The default stream runs each operation at once. So whoever reads what was not waited for, or
/// writes over what is still to be read, gets other bits.
#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/stream.hpp>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

namespace fourfold::device {
namespace {

class Queue {
 public:
  void add(std::function<void()> work) {
    waiting_.push_back(std::move(work));
    ++added_;
  }
  std::size_t added() const { return added_; }
  /// Does the first `count` pieces of work ever added, as far as they are not done.
  void run_to(std::size_t count) {
    for (; done_ < count; ++done_) {
      waiting_.front()();
      waiting_.pop_front();
    }
  }

 private:
  std::deque<std::function<void()>> waiting_;
  std::size_t added_ = 0;
  std::size_t done_ = 0;
};

Queue* queue_of(StreamRef stream) {
  return static_cast<Queue*>(stream.native());
}

void enqueue(std::function<void()> work, StreamRef stream) {
  if (Queue* const queue = queue_of(stream)) {
    queue->add(std::move(work));
  } else {
    work();
  }
}

}  // namespace

struct Stream::Impl {
  Queue queue;
};
struct Event::Impl {
  Queue* queue = nullptr;
  std::size_t mark = 0;
};

void StreamRef::synchronize() const {
  if (Queue* const queue = queue_of(*this)) {
    queue->run_to(queue->added());
  }
}

void run_on_host(const std::function<void()>& work, StreamRef stream) {
  enqueue(work, stream);
}

Stream::Stream() : impl_(std::make_unique<Impl>()) {}
Stream::~Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
StreamRef Stream::ref() const noexcept {
  return StreamRef(&impl_->queue);
}

Event::Event() : impl_(std::make_unique<Impl>()) {}
Event::~Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;
void Event::record(StreamRef stream) {
  impl_->queue = queue_of(stream);
  impl_->mark = impl_->queue == nullptr ? 0 : impl_->queue->added();
}
void Event::wait(StreamRef stream) const {
  if (impl_->queue == nullptr || impl_->queue == queue_of(stream)) {
    return;  // it has happened, or comes first anyway
  }
  FOURFOLD_EXPECT(queue_of(stream) == nullptr);
  impl_->queue->run_to(impl_->mark);
}

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  const std::size_t rounded = (bytes / 256 + 1) * 256;
  data_ = std::aligned_alloc(256, rounded);
  FOURFOLD_EXPECT(data_ != nullptr);
  std::memset(data_, 0, rounded);
}
Buffer::~Buffer() {
  std::free(data_);
}
Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void copy(void* target, const void* source, std::size_t bytes, StreamRef stream) {
  enqueue([=] { std::memcpy(target, source, bytes); }, stream);
}

void zero(void* target, std::size_t bytes, StreamRef stream) {
  enqueue([=] { std::memset(target, 0, bytes); }, stream);
}

}  // namespace fourfold::device
