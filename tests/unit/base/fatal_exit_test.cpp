// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/fatal_exit.hpp>

#include <catch2/catch_test_macros.hpp>

#include <stdexcept>
#include <string>
#include <thread>

using fourfold::ExitCode;
using fourfold::OnSuddenEnd;
using fourfold::tell_fatal_exit;

TEST_CASE("who ends a process tells it once, while the program wants to know", "[fatal_exit]") {
  std::string told;
  const auto tell = [&](ExitCode code, const std::string& why) {
    told += std::to_string(static_cast<int>(code)) + why;
  };
  tell_fatal_exit(ExitCode::node_fault, " before");
  {
    const OnSuddenEnd wanted(tell);
    std::thread([] { tell_fatal_exit(ExitCode::node_fault, " a peer is gone"); }).join();
    tell_fatal_exit(ExitCode::node_fault, " again");
  }
  { const OnSuddenEnd wanted(tell); }
  tell_fatal_exit(ExitCode::node_fault, " after");
  CHECK(told == "85 a peer is gone");
}

TEST_CASE("that it cannot be told keeps no process from its end", "[fatal_exit]") {
  const OnSuddenEnd wanted([](ExitCode, const std::string&) { throw std::runtime_error("full"); });
  CHECK_NOTHROW(tell_fatal_exit(ExitCode::internal, "why"));
}
