// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/comm/thread_group.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace fourfold;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

struct Thrown {
  ExitCode code = ExitCode::finished;
  bool is_users = false;
  std::string text;
  unsigned line = 0;  ///< in this file, else 0
};

using Way = void (*)(comm::Communicator&, const std::function<void()>&);

/// What each rank throws when `work` runs on all of them, or on those that `way` lets do it.
std::map<int, Thrown> agreed(int ranks, const std::function<void(int rank)>& work,
                             Way way = comm::collective_try) {
  std::map<int, Thrown> thrown;
  std::mutex mutex;
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    Thrown mine;
    try {
      way(world, [&] { work(world.rank()); });
    } catch (const Error& error) {
      const bool is_here = std::string(error.where().file_name()).find(__FILE__) == 0;
      mine = {error.code(), dynamic_cast<const UserError*>(&error) != nullptr, error.what(),
              is_here ? static_cast<unsigned>(error.where().line()) : 0};
    }
    const std::scoped_lock lock(mutex);
    thrown[world.rank()] = mine;
  });
  return thrown;
}

}  // namespace

TEST_CASE("ranks that all succeed go on") {
  for (const auto& [rank, thrown] : agreed(3, [](int) {})) {
    CHECK(thrown.code == ExitCode::finished);
  }
}

TEST_CASE("a user's error of one rank is a user's error of all, without a place") {
  const auto thrown = agreed(3, [](int rank) {
    if (rank == 1) {
      throw UserError(ExitCode::cannot_write, "the disk\nis full");
    }
  });
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(thrown.at(rank).code == ExitCode::cannot_write);
    CHECK(thrown.at(rank).is_users);
    CHECK(thrown.at(rank).text == "rank 1: the disk\nis full");
  }
}

TEST_CASE("what users' errors of all ranks say alike is said once") {
  const auto thrown = agreed(3, [](int) { throw UserError(ExitCode::config, "run.toml:3: no"); });
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(thrown.at(rank).code == ExitCode::config);
    CHECK(thrown.at(rank).text == "run.toml:3: no");
  }
  const auto differ = agreed(2, [](int rank) {
    throw UserError(ExitCode::config, rank == 0 ? "run.toml:3: no" : "run.toml:4: no");
  });
  CHECK(differ.at(1).text == "rank 0: run.toml:3: no\n  rank 1: run.toml:4: no");
}

TEST_CASE("another error keeps its class, its code and the place where it was noticed") {
  unsigned line = 0;
  const auto fail = [&](int rank) {
    if (rank == 2) {
      line = __LINE__ + 1;
      throw SystemError(ExitCode::node_fault, "gone");
    }
  };
  auto thrown = agreed(3, fail);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(thrown.at(rank).code == ExitCode::node_fault);
    CHECK_FALSE(thrown.at(rank).is_users);
    CHECK_THAT(thrown.at(rank).text, ContainsSubstring("rank 2: gone (noticed at "));
    CHECK_THAT(thrown.at(rank).text,
               EndsWith("fail_together_test.cpp:" + std::to_string(line) + ")"));
  }
  CHECK(thrown.at(2).line == line);
  thrown = agreed(1, [&](int) { fail(2); });
  CHECK(thrown.at(0).text == "gone");  // the place is where()
  CHECK(thrown.at(0).line == line);
}

TEST_CASE("a fault weighs more than a user's error of a lower rank") {
  const auto thrown = agreed(3, [](int rank) {
    if (rank == 0) {
      throw UserError(ExitCode::cannot_write, "full");
    }
    throw SystemError(rank == 1 ? ExitCode::node_fault : ExitCode::internal, "gone");
  });
  for (const auto& [rank, mine] : thrown) {
    CAPTURE(rank);
    CHECK(mine.code == ExitCode::node_fault);
    CHECK_FALSE(mine.is_users);
    CHECK_THAT(mine.text, ContainsSubstring("rank 0: full"));
  }
}

TEST_CASE("the lowest rank that failed gives class and code, and the first failures are told") {
  const auto thrown = agreed(8, [](int rank) {
    if (rank == 1) {
      throw SystemError(ExitCode::node_fault, "first");
    }
    if (rank >= 2) {
      throw UserError(ExitCode::cannot_write, "no." + std::to_string(rank));
    }
  });
  for (const auto& [rank, one] : thrown) {
    CHECK(one.code == ExitCode::node_fault);
    CHECK_FALSE(one.is_users);
    CHECK_THAT(one.text, ContainsSubstring("rank 4: no.4\n  and 3 more ranks"));
  }
}

TEST_CASE("lack of memory is a user's, anything unforeseen ours") {
  auto thrown = agreed(2, [](int) { throw std::bad_alloc(); });
  CHECK(thrown.at(0).code == ExitCode::config);
  CHECK(thrown.at(0).is_users);
  CHECK_THAT(thrown.at(0).text, StartsWith("out of memory"));
  thrown = agreed(2, [](int) { throw std::runtime_error("surprise"); });
  CHECK(thrown.at(1).code == ExitCode::internal);
  CHECK_FALSE(thrown.at(1).is_users);
  CHECK(thrown.at(1).text == "rank 0: surprise\n  rank 1: surprise");
}

TEST_CASE("what the first rank does is done on no other, and before any goes on") {
  for (const int ranks : {1, 2, 5}) {
    std::vector<int> who;  // one rank writes, and the barrier orders the others' reads
    std::array<std::size_t, 5> seen{};
    comm::run_ranks(ranks, [&](comm::Communicator& world) {
      comm::run_on_root(world, [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        who.push_back(world.rank());
      });
      seen.at(static_cast<std::size_t>(world.rank())) = who.size();
    });
    CHECK(who == std::vector<int>{0});
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(seen.at(static_cast<std::size_t>(rank)) == 1);
    }
  }
}

TEST_CASE("what the first rank fails with all throw") {
  const auto fail = [](int) { throw UserError(ExitCode::cannot_write, "the disk is full"); };
  for (const auto& [rank, thrown] : agreed(3, fail, comm::run_on_root)) {
    CAPTURE(rank);
    CHECK(thrown.code == ExitCode::cannot_write);
    CHECK(thrown.is_users);
    CHECK(thrown.text == "rank 0: the disk is full");
  }
}
