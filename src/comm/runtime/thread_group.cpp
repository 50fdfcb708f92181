// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "communicator/argument_checks.hpp"
#include "devices/device_world.hpp"
#include "host/message_communicator.hpp"
#include "host/transport.threads.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/comm/thread_group.hpp>

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fourfold::comm {
namespace {

void run_threads(int ranks, bool on_device, const std::function<void(Communicator& world)>& body) {
  FOURFOLD_EXPECT(ranks >= 1);
  ThreadWorld world(ranks);
  const auto channel = std::make_shared<ThreadChannel>(ranks);
  const auto meeting = on_device ? make_device_rendezvous(world, ranks) : nullptr;
  std::mutex mutex;
  std::exception_ptr first_failure;

  const auto run_rank = [&](int rank) {
    log::set_thread_rank(rank, ranks);
    const auto failed = [&](const std::string& reason) {
      {
        const std::scoped_lock lock(mutex);
        first_failure = first_failure ? first_failure : std::current_exception();
      }
      world.fail(rank, reason);
    };
    try {
      std::unique_ptr<Communicator> communicator = std::make_unique<MessageCommunicator>(
          std::make_unique<ThreadTransport>(world, world.progress(rank), channel, rank), "world",
          all_ranks(ranks));
      if (on_device) {
        communicator = join_on_device(meeting, std::move(communicator));
      }
      body(*communicator);
    } catch (const std::exception& error) {
      failed(error.what());
    } catch (...) {
      failed("an unknown exception");
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(run_rank, rank);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (first_failure) {
    std::rethrow_exception(first_failure);
  }
}

}  // namespace

void run_ranks(int ranks, const std::function<void(Communicator& world)>& body) {
  run_threads(ranks, false, body);
}

void run_device_ranks(int ranks, const std::function<void(Communicator& world)>& body) {
  run_threads(ranks, true, body);
}

}  // namespace fourfold::comm
