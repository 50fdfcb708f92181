// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "host/shared_memory.hpp"

#include "host/shared_window.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>

#include <catch2/catch_test_macros.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace fourfold::comm {
namespace {

constexpr std::size_t bytes = 100'000;

TEST_CASE("two processes see the same memory, zero at first", "[shared_memory]") {
  MemoryOffer offer;
  const auto memory = make_process_memory(bytes, offer);
  REQUIRE(memory);
  CHECK(std::all_of(memory->data.get(), memory->data.get() + bytes,
                    [](std::byte each) { return each == std::byte{0}; }));
  std::memcpy(memory->data.get() + bytes - 6, "from a", 6);
  const pid_t child = ::fork();
  if (child == 0) {
    // Found as a stranger finds it, not inherited.
    const auto found = find_process_memory(bytes, offer);
    const bool right = found && std::memcmp(found->data.get() + bytes - 6, "from a", 6) == 0;
    if (right) {
      std::memcpy(found->data.get(), "from b", 6);
    }
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(std::memcmp(memory->data.get(), "from b", 6) == 0);
}

TEST_CASE("an offer that is not the block's finds nothing", "[shared_memory]") {
  MemoryOffer offer;
  auto memory = make_process_memory(bytes, offer);
  REQUIRE(memory);
  CHECK(find_process_memory(bytes, offer));
  CHECK_FALSE(find_process_memory(bytes + 1, offer));
  MemoryOffer wrong = offer;
  wrong.token += 1;  // another machine's process of the same number
  CHECK_FALSE(find_process_memory(bytes, wrong));
  wrong = offer;
  wrong.handle = 0;  // a file of another kind, or none
  CHECK_FALSE(find_process_memory(bytes, wrong));
  wrong = offer;
  wrong.owner = -1;
  CHECK_FALSE(find_process_memory(bytes, wrong));
  memory->offered.reset();
  CHECK_FALSE(find_process_memory(bytes, offer));
}

/// Ranks of which some cannot see the others' memory.
class Partial : public Transport {
 public:
  enum class Lack { domain, maker, finder };
  Partial(Communicator& world, Lack lack) : world_(world), lack_(lack) {}
  int rank() const noexcept override { return world_.rank(); }
  int size() const noexcept override { return world_.size(); }
  int tags() const noexcept override { return 0; }
  Progress& progress() noexcept override { std::abort(); }
  std::unique_ptr<TransferBatch> batch() override { return nullptr; }
  std::unique_ptr<Transport> subgroup(std::span<const int> /*members*/,
                                      const std::string& /*name*/) override {
    return nullptr;
  }
  std::int64_t memory_domain() const override {
    return lack_ == Lack::domain && world_.rank() == 2 ? -5 : 5;
  }
  std::optional<SharedMemory> make_memory(std::size_t size_bytes, MemoryOffer& offer) override {
    return lack_ == Lack::maker ? std::nullopt : make_process_memory(size_bytes, offer);
  }
  std::optional<SharedMemory> find_memory(std::size_t size_bytes,
                                          const MemoryOffer& offer) override {
    asked = true;
    return lack_ == Lack::finder && world_.rank() == 1 ? std::nullopt
                                                       : find_process_memory(size_bytes, offer);
  }
  bool prefers_shared_memory() const noexcept override { return true; }

  bool asked = false;

 private:
  Communicator& world_;
  Lack lack_;
};

TEST_CASE("all ranks have a window or none has", "[shared_memory]") {
  for (const auto lack : {Partial::Lack::domain, Partial::Lack::maker, Partial::Lack::finder}) {
    std::atomic<int> windows = 0;
    std::atomic<int> asked = 0;
    run_ranks(3, [&](Communicator& world) {
      Partial transport(world, lack);
      windows += open_window(transport, world) ? 1 : 0;
      asked += transport.asked ? 1 : 0;
    });
    CHECK(windows == 0);
    // Ranks of another machine are not even asked.
    CHECK((asked == 0) == (lack == Partial::Lack::domain));
  }
}

TEST_CASE("windows of many ranks stay small", "[shared_memory]") {
  for (const int ranks : {2, 8, 64, 128, 256}) {
    CHECK(SharedWindow::area_bytes(ranks) % 4096 == 0);
    CHECK(SharedWindow::memory_bytes(ranks) <= (std::size_t{65} << 20));
  }
  CHECK(SharedWindow::area_bytes(2) == 256 * 1024);
}

}  // namespace
}  // namespace fourfold::comm
