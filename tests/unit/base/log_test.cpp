// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <thread>
#include <vector>

namespace logged = fourfold::log;

TEST_CASE("only rank 0 says what all reach; local lines name their rank", "[log]") {
  std::vector<std::string> lines;
  const logged::Sink before =
      logged::set_sink([&](logged::Level, std::string_view line) { lines.emplace_back(line); });
  logged::local(logged::Level::info, "alone");
  for (int rank = 0; rank < 2; ++rank) {
    std::thread([rank] {
      logged::set_thread_rank(rank, 2);
      logged::info("all");
      logged::warning("all, too");
      logged::local(logged::Level::error, "mine");
    }).join();
  }
  CHECK(logged::thread_rank() == 0);
  logged::set_sink(before);
  CHECK(lines ==
        std::vector<std::string>{"alone", "all", "all, too", "[rank 0] mine", "[rank 1] mine"});
}
