// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/comm/thread_group.hpp>

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <stdexcept>
#include <string>

namespace fourfold::comm {
namespace {

TEST_CASE("ranks are threads with their own log rank", "[thread_group]") {
  std::atomic<int> right = 0;
  run_ranks(5, [&](Communicator& world) {
    right += log::thread_rank() == world.rank() && world.size() == 5 ? 1 : 0;
  });
  CHECK(right == 5);
}

TEST_CASE("a rank that fails ends the others' waiting, and its error is the one thrown",
          "[thread_group]") {
  std::atomic<int> told = 0;
  const auto run = [&] {
    run_ranks(4, [&](Communicator& world) {
      if (world.rank() == 2) {
        throw std::runtime_error("the cause");
      }
      try {
        world.barrier();
      } catch (const SystemError& error) {
        const std::string text = error.what();
        told += error.code() == ExitCode::node_fault && text.find("barrier") != std::string::npos &&
                text.find("rank 2 has failed: the cause") != std::string::npos;
        throw;
      }
    });
  };
  try {
    run();
    FAIL("nothing was thrown");
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()) == "the cause");
  }
  CHECK(told == 3);
}

TEST_CASE("messages in flight when a rank fails are withdrawn", "[thread_group]") {
  CHECK_THROWS_AS(run_ranks(2,
                            [](Communicator& world) {
                              std::vector<float> values(1000);
                              Work work = world.rank() == 0
                                              ? world.recv({values.data(), {1000}}, 1, 0, {})
                                              : world.send({values.data(), {1000}}, 0, 1, {});
                              if (world.rank() == 1) {
                                throw std::logic_error("gives up");
                              }
                              work.wait({});
                            }),
                  std::logic_error);
}

TEST_CASE("a message of the wrong size is an error", "[thread_group]") {
  CHECK_THROWS_AS(run_ranks(2,
                            [](Communicator& world) {
                              std::vector<float> values(8);
                              if (world.rank() == 0) {
                                world.send({values.data(), {8}}, 1, 0, {}).wait({});
                              } else {
                                world.recv({values.data(), {7}}, 0, 0, {}).wait({});
                              }
                            }),
                  Error);
}

}  // namespace
}  // namespace fourfold::comm
