// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <thread>
#include <vector>

namespace log = fourfold::log;

TEST_CASE("only rank 0 says what all reach; local lines name their rank", "[log]") {
  std::vector<std::string> lines;
  const log::Sink before =
      log::set_sink([&](log::Level, std::string_view line) { lines.emplace_back(line); });
  log::local(log::Level::info, "alone");
  for (int rank = 0; rank < 2; ++rank) {
    std::thread([rank] {
      log::set_thread_rank(rank, 2);
      log::info("all");
      log::warning("all, too");
      log::local(log::Level::error, "mine");
    }).join();
  }
  CHECK(log::thread_rank() == 0);
  log::set_sink(before);
  CHECK(lines ==
        std::vector<std::string>{"alone", "all", "all, too", "[rank 0] mine", "[rank 1] mine"});
}
