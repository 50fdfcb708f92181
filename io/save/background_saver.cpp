// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "save/step_save.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/standstill.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/background_saver.hpp>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

namespace fourfold::io {
struct BackgroundSaver::Impl {
  Impl(const CheckpointStore& of_saver, std::size_t bytes, int of_thread, int of_run)
      : store(of_saver),
        rank(of_thread),
        ranks(of_run),
        staging_bytes(bytes),
        staging(std::make_unique_for_overwrite<std::byte[]>(bytes)) {
    std::memset(staging.get(), 0, bytes);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (save) {
      save->share().give_up();
    }
    join();
  }

  /// Begins a piece of work, by a thread as this rank, once the last one has ended.
  void start(std::function<void()> work) {
    join();
    is_done = false;
    const auto no_thread = comm::capture_failure([&] {
      thread = std::thread([this, work = std::move(work)] {
        log::set_thread_rank(rank, ranks);
        failure = comm::capture_failure(work);
        is_done.store(true, std::memory_order_release);
      });
    });
    if (no_thread) {  // the others learn it when all ask what came of the work
      failure = no_thread;
      is_done = true;
    }
  }
  void join() {
    if (thread.joinable()) {
      thread.join();
    }
  }

  /// Copies pieces that were on their way. Whatever comes of it, they are not read any more.
  void read_pieces() {
    const auto tell = [this] {
      pieces_are_read = true;
      pieces_are_read.notify_all();
    };
    try {
      if (save->share().await_pieces()) {
        save->share().stage(staging.get());
      }
    } catch (...) {
      tell();
      throw;
    }
    tell();
  }

  const CheckpointStore& store;
  int rank;
  int ranks;
  std::size_t staging_bytes;
  std::unique_ptr<std::byte[]> staging;
  std::unique_ptr<StepSave> save;  ///< under way
  std::atomic<bool> pieces_are_read{true};
  bool is_publishing = false;
  Stopwatch watch;                       ///< since begin()
  std::atomic<bool> is_done{true};       ///< the thread's work
  std::optional<comm::Failure> failure;  ///< that the last piece of work ended with
  std::thread thread;
};

std::size_t BackgroundSaver::staging_bytes(std::span<const TensorLayout> tensors,
                                           const PlanOptions& plan, int rank, int ranks) {
  return plan_save(tensors, ranks, plan).bytes_of_rank[rank];
}

BackgroundSaver::BackgroundSaver(const CheckpointStore& store,
                                 std::span<const TensorLayout> tensors,
                                 const comm::Communicator& communicator) {
  const std::size_t bytes =
      staging_bytes(tensors, store.options().plan, communicator.rank(), communicator.size());
  impl_ = std::make_unique<Impl>(store, bytes, communicator.rank(), communicator.size());
}

BackgroundSaver::~BackgroundSaver() = default;

bool BackgroundSaver::is_busy() const noexcept {
  return impl_->save != nullptr;
}

std::int64_t BackgroundSaver::step() const noexcept {
  return impl_->save ? impl_->save->share().job().step : -1;
}

void BackgroundSaver::begin(const SaveRequest& request, comm::Communicator& communicator) {
  FOURFOLD_EXPECT(!is_busy());
  impl_->watch = Stopwatch();
  auto save = std::make_unique<StepSave>(impl_->store, request, communicator);
  FOURFOLD_ASSERT(save->share().own_bytes() <= impl_->staging_bytes);
  const bool is_arriving = save->share().is_arriving();
  if (!is_arriving) {
    save->share().stage(impl_->staging.get());
  }
  impl_->save = std::move(save);
  impl_->is_publishing = false;
  impl_->pieces_are_read = !is_arriving;
  impl_->start([impl = impl_.get(), is_arriving] {
    if (is_arriving) {
      impl->read_pieces();
    }
    impl->save->write();
  });
}

void BackgroundSaver::wait_until_read() const {
  if (!impl_->is_done) {  // else there is nothing left to read, or nobody to do it
    impl_->pieces_are_read.wait(false);
  }
}

std::optional<SaveReport> BackgroundSaver::poll(comm::Communicator& communicator) {
  if (!is_busy()) {
    return std::nullopt;
  }
  const std::int64_t busy = impl_->is_done ? 0 : 1;
  if (comm::all_reduce_scalar(communicator, busy, comm::ReduceOp::max) != 0) {
    return std::nullopt;
  }
  impl_->join();
  std::unique_ptr<StepSave> save = std::move(impl_->save);  // gone, should anything fail
  agree_on_save(communicator, std::exchange(impl_->failure, std::nullopt));
  if (impl_->is_publishing) {
    return SaveReport{save->folder(), save->share().job().payload_bytes(), impl_->watch.seconds()};
  }
  save->share().gather(communicator);
  impl_->save = std::move(save);
  impl_->is_publishing = true;
  if (communicator.rank() == 0) {
    impl_->start([impl = impl_.get()] { impl->save->publish(); });
  }
  return std::nullopt;
}

std::optional<SaveReport> BackgroundSaver::finish(comm::Communicator& communicator) {
  std::optional<SaveReport> report;
  while (is_busy() && !report) {
    impl_->join();
    report = poll(communicator);
  }
  return report;
}

}  // namespace fourfold::io
