// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "pattern.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/harness/on_ranks.hpp>

#include <catch2/catch_test_macros.hpp>

namespace fourfold::comm {
namespace {

using harness::Findings;
using harness::on_ranks;

#if FOURFOLD_CONTRACTS
/// On a communicator of its own: one whose ranks have disagreed is of no more use.
std::string disagreement(Communicator& world, const std::function<Work(Communicator&)>& call) {
  try {
    call(world).wait({});
  } catch (const Error& error) {
    return error.code() == ExitCode::internal ? error.what() : "wrong exit code";
  }
  return {};
}

TEST_CASE("ranks that disagree are told which operation and how", "[agreement]") {
  on_ranks([](Communicator& world, Findings& findings) {
    if (world.size() == 1) {
      return;
    }
    Values<float> values(static_cast<std::size_t>(world.rank() == 0 ? 100 : 101));
    const std::string text = disagreement(
        world, [&](Communicator& all) { return all.all_reduce(view(values), ReduceOp::sum, {}); });
    findings.check(text.find("all_reduce(sum, f32 x 100)") != std::string::npos &&
                       text.find("all_reduce(sum, f32 x 101)") != std::string::npos &&
                       text.find("'world'") != std::string::npos,
                   "message: " + text);
  });
}
#endif

}  // namespace
}  // namespace fourfold::comm
