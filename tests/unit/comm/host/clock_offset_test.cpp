// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/clock.hpp>
#include <fourfold/comm/clock_offset.hpp>
#include <fourfold/device/timed_event.hpp>
#include <fourfold/harness/on_ranks.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

#include <cmath>

namespace fourfold::comm {
namespace {

using harness::Findings;
using harness::on_ranks;

constexpr double step_s = 1000;

/// As if every rank's machine had been started `step_s` before that of the rank before it.
double ahead(const Communicator& world) {
  return step_s * world.rank();
}

TEST_CASE("clocks of other machines are found out", "[clock_offset]") {
  on_ranks([](Communicator& world, Findings& findings) {
    const double offset_s = clock_offset_s(world, fmt::format("machine {}", world.rank()),
                                           [&] { return steady_time_s() + ahead(world); });
    findings.check(std::abs(offset_s - ahead(world)) < step_s / 10,
                   fmt::format("{} s of {} s", offset_s, ahead(world)));
  });
}

TEST_CASE("processes of one machine share its clock", "[clock_offset]") {
  on_ranks([](Communicator& world, Findings& findings) {
    // Clocks that would be seen to differ if anybody looked. Odd ranks are on another machine.
    const bool other = world.rank() % 2 == 1;
    const double offset_s =
        clock_offset_s(world, other ? "b" : "a", [&] { return steady_time_s() + ahead(world); });
    findings.check(other ? std::abs(offset_s - ahead(world)) < step_s / 10 : offset_s == 0,
                   fmt::format("rank {}: {} s", world.rank(), offset_s));
  });
}

TEST_CASE("a machine without a name shares its clock with nobody", "[clock_offset]") {
  on_ranks([](Communicator& world, Findings& findings) {
    const double offset_s =
        clock_offset_s(world, "", [&] { return steady_time_s() + ahead(world); });
    findings.check(std::abs(offset_s - ahead(world)) < step_s / 10, "offset");
  });
}

TEST_CASE("a machine has one identity", "[clock_offset]") {
  CHECK(machine_identity() == machine_identity());
  CHECK(machine_identity().find('\n') == std::string::npos);
}

}  // namespace
}  // namespace fourfold::comm
