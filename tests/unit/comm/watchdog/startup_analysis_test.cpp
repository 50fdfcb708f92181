// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "watchdog/startup_analysis.hpp"

#include "environment.hpp"
#include "scratch_folder.hpp"
#include "watchdog/startup_rendezvous.hpp"

#include <fourfold/comm/startup_watchdog.hpp>

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

using namespace fourfold::comm;
using Names = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

namespace {

std::vector<int> suspects(const HangDiagnosis& verdict) {
  std::vector<int> ranks;
  for (const auto& one : verdict.suspects) {
    ranks.push_back(one.rank);
  }
  return ranks;
}

bool says(const HangDiagnosis& verdict, const std::string& text) {
  return verdict.reason.find(text) != std::string::npos;
}

std::string name_in(const Variables& variables, const std::string& parent) {
  const fourfold::harness::Environment environment(variables);
  return name_of_start(parent);
}

std::vector<int> beside_in(const Variables& variables, const Launch& launch) {
  const fourfold::harness::Environment environment(variables);
  return ranks_beside(launch);
}

struct Start {
  int ranks = 1;
  double limit_s = 0;
  std::map<int, Arrival> waiting = {};
  Names nodes = {};
};

HangDiagnosis analyse_start(const Start& start) {
  return fourfold::comm::analyse_start(
      state_of_start(start.ranks, start.limit_s, start.waiting, start.nodes), start.limit_s);
}

/// Seven ranks on four nodes, two each but on the last; all wait but those of `missing`.
Start seven_ranks(const std::vector<int>& missing) {
  Start start{.ranks = 7,
              .limit_s = 300,
              .nodes = nodes_of_ranks({"n0", "n1", "n2", "n3"}, "2(x3),1", "block", 7)};
  for (int rank = 0; rank < 7; ++rank) {
    start.waiting[rank] = {.host = "n" + std::to_string(rank / 2), .pid = 100 + rank};
    const int first = rank / 2 * 2;
    start.waiting[rank].beside =
        rank == 6 ? std::vector<int>{6} : std::vector<int>{first, first + 1};
  }
  for (const int rank : missing) {
    start.waiting.erase(rank);
  }
  return start;
}

}  // namespace

TEST_CASE("tasks by block are node after node, cyclic ones dealt in turn", "[startup_watchdog]") {
  const Names nodes{"a", "b", "c", "d"};
  const Names ragged{"a", "a", "b", "b", "c", "c", "d"};
  CHECK(nodes_of_ranks(nodes, "2(x3),1", "block", 7) == ragged);
  CHECK(nodes_of_ranks(nodes, "2(x3),1", "", 7) == ragged);
  CHECK(nodes_of_ranks(nodes, "2(x3),1", "block:cyclic,Pack", 7) == ragged);
  CHECK(nodes_of_ranks({"a", "b", "c"}, "1,3,1(x1)", "block", 5) == Names{"a", "b", "b", "b", "c"});
  const Names dealt{"a", "b", "c", "d", "a", "b", "c"};
  CHECK(nodes_of_ranks(nodes, "2(x3),1", "cyclic", 7) == dealt);
  CHECK(nodes_of_ranks(nodes, "2(x3),1", "cyclic:block,NoPack", 7) == dealt);
  CHECK(nodes_of_ranks({"a", "b", "c"}, "1,3,1", "cyclic", 5) == Names{"a", "b", "c", "b", "b"});
  CHECK(nodes_of_ranks(nodes, "1(x4)", "cyclic", 4) == nodes);
  CHECK(nodes_of_ranks(nodes, "1(x4)", "cyclic", 3).empty());
  for (const char* other : {"plane=2", "arbitrary", "blocks", "cycl"}) {
    CHECK(nodes_of_ranks(nodes, "2(x3),1", other, 7).empty());
  }
  for (const char* wrong : {"", "2", "2(x4)", "2(x3),2", "2(x3),1,", "2(x3", "-1(x3),1", "2(x),1",
                            "2(x-3),1", "1(x999999999)", "9999999999999", "x", "7,0(x2)"}) {
    INFO(wrong);
    CHECK(nodes_of_ranks(nodes, wrong, "block", 7).empty());
  }
  CHECK(nodes_of_ranks({}, "", "block", 0).empty());
}

TEST_CASE("a rank that does not start is named with its node", "[startup_watchdog]") {
  const HangDiagnosis one = analyse_start(seven_ranks({3}));
  CHECK(suspects(one) == std::vector{3});
  CHECK(one.waiting == std::vector{0, 1, 2, 4, 5, 6});
  CHECK(one.bad_hosts() == Names{"n1"});
  CHECK(one.code() == fourfold::ExitCode::hang);
  CHECK(says(one, "rank 3 on n1 has not come to MPI_Init within 300 s"));
  CHECK(says(one, "ranks 0-2, 4-6 wait there"));

  const HangDiagnosis several = analyse_start(seven_ranks({0, 4, 5, 6}));
  CHECK(suspects(several) == std::vector{0, 4, 5, 6});
  CHECK(several.bad_hosts() == Names{"n0", "n2", "n3"});
  CHECK(says(several, "rank 0 on n0 has"));
  CHECK(says(several, "ranks 4-5 on n2 have"));
  CHECK(says(several, "rank 6 on n3 has"));
}

TEST_CASE("a node is named only where nobody knows better", "[startup_watchdog]") {
  Start start = seven_ranks({2, 3, 6});
  start.nodes.clear();
  start.waiting.erase(0);  // rank 1 knows its neighbour
  const HangDiagnosis without = analyse_start(start);
  CHECK(without.bad_hosts() == Names{"n0"});
  CHECK(says(without, "rank 0 on n0 has"));
  CHECK(says(without, "ranks 2-3, 6 have not come"));

  // Tasks that were dealt out in turn, where Slurm calls them block.
  start = seven_ranks({3, 5});
  start.waiting[0].beside = start.waiting[4].beside = {0, 4};
  start.waiting[4].host = "n0";
  const HangDiagnosis dealt = analyse_start(start);
  CHECK(dealt.suspects[1].host.empty());
  CHECK(dealt.suspects[0].host == "n1");  // as rank 2 says
  CHECK(dealt.bad_hosts() == Names{"n1"});

  // A host calls itself otherwise than Slurm.
  start = seven_ranks({2, 6});
  start.waiting[3].host = "n1.cluster";
  CHECK(analyse_start(start).bad_hosts() == Names{"n1.cluster", "n3"});
  // What makes no sense is not believed, nor does it do harm.
  start.waiting[3].beside = {3, 77, -1};
  start.waiting[99] = {};
  CHECK(suspects(analyse_start(start)) == std::vector{2, 6});
}

TEST_CASE("a start of which nobody is missing has no suspects", "[startup_watchdog]") {
  const HangDiagnosis all = analyse_start(seven_ranks({}));
  CHECK(all.suspects.empty());
  CHECK(all.bad_hosts().empty());
  CHECK(all.code() == fourfold::ExitCode::hang);
  CHECK(says(all, "all 7 ranks have come to MPI_Init"));
  const HangDiagnosis alone = analyse_start({.limit_s = 2.5});
  CHECK(alone.suspects.empty());
  CHECK(says(alone, "MPI_Init has not come back within 2.5 s"));
}

TEST_CASE("all processes of a start find one name for it, and no other start the same",
          "[startup_watchdog]") {
  const std::string none = "bash";
  Variables step{{"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"}, {"PMI_RANK", "3"}};
  CHECK(name_in(step, none) == "77-0");
  step["SLURM_RESTART_COUNT"] = "2";
  CHECK(name_in(step, none) == "77-2-0");
  const std::string proxy("/usr/bin/hydra_pmi_proxy\0--control-port\0node0:34991\0--rmk\0user\0",
                          64);
  CHECK(name_in({}, proxy) == "node0-34991");
  // A proxy in a step and one beside it are of one mpiexec.
  CHECK(name_in(step, proxy) == "77-2-node0-34991");
  const Variables pmix{{"PMIX_NAMESPACE", "../prterun@1"}};
  CHECK(name_in(pmix, none) == "..-prterun-1");
  CHECK(name_in({}, none) == "any");
}

TEST_CASE("who runs beside a rank, as launchers tell", "[startup_watchdog]") {
  const Launch launch{.rank = 3, .size = 4, .variable = "PMI_SIZE"};
  const Variables one_host{{"MPI_LOCALNRANKS", "4"}};
  CHECK(beside_in(one_host, launch) == std::vector{0, 1, 2, 3});
  const Variables two_hosts{{"MPI_LOCALNRANKS", "2"}};
  CHECK(beside_in(two_hosts, launch).empty());
  Variables slurm{{"SLURM_GTIDS", "1,3"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "3"}};
  CHECK(beside_in(slurm, launch) == std::vector{1, 3});
  slurm["SLURM_STEP_NUM_TASKS"] = "2";  // whose tasks start the ranks
  CHECK(beside_in(slurm, launch).empty());
}

TEST_CASE("ranks meet in a folder that goes with the last one", "[startup_watchdog]") {
  const fourfold::harness::ScratchFolder scratch;
  const auto log_dir = scratch / "not/yet/there";
  constexpr double age_s = 300;
  const StartMeeting second(log_dir, "7-0", 2);
  const StartMeeting third(log_dir, "7-0", 3);
  const Arrival arrival{.host = "n1", .pid = 12, .beside = {2, 3}};
  CHECK_FALSE(second.is_called());
  REQUIRE(second.join(arrival));
  REQUIRE(third.join({.host = "n1", .pid = 13}));
  CHECK(third.is_called());
  CHECK_FALSE(StartMeeting(log_dir, "8-0", 1).is_called());
  CHECK_FALSE(second.has_come_below(age_s));
  CHECK(third.has_come_below(age_s));
  CHECK(third.arrivals(age_s) ==
        std::map<int, Arrival>{{2, arrival}, {3, {.host = "n1", .pid = 13}}});
  CHECK(second.folder().filename().string().starts_with(startup_rendezvous_prefix));

  // What an earlier start has left under the same name.
  REQUIRE(StartMeeting(log_dir, "7-0", 0).join({.host = "n0", .pid = 1}));
  const auto before = std::filesystem::last_write_time(second.folder() / "rank-2");
  std::filesystem::last_write_time(second.folder() / "rank-0", before - std::chrono::seconds(301));
  CHECK_FALSE(second.has_come_below(age_s));
  CHECK(second.arrivals(age_s).size() == 2);
  fourfold::harness::write_bytes(second.folder() / "rank-x", "what is this");
  CHECK(second.arrivals(age_s).size() == 2);
  std::filesystem::remove(second.folder() / "rank-x");
  std::filesystem::remove(second.folder() / "rank-0");

  second.leave();
  CHECK(third.is_called());
  third.leave();
  CHECK_FALSE(third.is_called());
  CHECK(std::filesystem::is_empty(log_dir));
  { const StartupWatchdog watch({.limit_s = 300, .folder = log_dir}); }  // a start that was fine
  CHECK(std::filesystem::is_empty(log_dir));
  const auto file = scratch.write("file", "");
  CHECK_FALSE(StartMeeting(file, "7-0", 0).join(arrival));
}

TEST_CASE("who comes while a meeting is being ended finds none, and no part of it",
          "[startup_watchdog]") {
  constexpr double any_age_s = 1000;
  const fourfold::harness::ScratchFolder scratch;
  const StartMeeting first(scratch.path(), "any", 0);
  for (int repeat = 0; repeat < 1000; ++repeat) {
    // In which order files go the file system knows.
    const int rank = 1 + repeat % 16;
    const StartMeeting last(scratch.path(), "any", rank);
    REQUIRE(first.join({"n0", 100, {}}));
    REQUIRE(last.join({"n0", 100 + rank, {}}));
    std::jthread ends([&] { first.end(); });
    while (last.is_called()) {
      // As StartupWatchdog asks: whoever sees nobody before it must not find itself waiting alone.
      if (!last.has_come_below(any_age_s)) {
        REQUIRE_FALSE(last.arrivals(any_age_s).contains(rank));
      }
    }
    ends.join();
    REQUIRE(std::filesystem::is_empty(scratch.path()));
  }
}

TEST_CASE("ranks do not meet in a folder that a link leads to", "[startup_watchdog]") {
  const fourfold::harness::ScratchFolder scratch;
  const auto kept = scratch / "kept";
  std::filesystem::create_directory(kept);
  fourfold::harness::write_bytes(kept / "rank-0", "mine");
  fourfold::harness::write_bytes(kept / "rank-1", "mine");
  const StartMeeting meeting(scratch / "log", "7-0", 1);
  std::filesystem::create_directory(scratch / "log");
  std::filesystem::create_directory_symlink(kept, meeting.folder());
  CHECK_FALSE(meeting.is_called());
  CHECK_FALSE(meeting.join({.host = "n1", .pid = 12}));
  CHECK_FALSE(meeting.has_come_below(1e9));
  CHECK(meeting.arrivals(1e9).empty());
  meeting.leave();
  CHECK(std::filesystem::is_symlink(meeting.folder()));
  meeting.end();
  CHECK(fourfold::harness::read_bytes(kept / "rank-0") == "mine");
  CHECK(fourfold::harness::read_bytes(kept / "rank-1") == "mine");

  // A link in the folder, in place of a rank's word.
  const StartMeeting other(scratch / "log", "8-0", 1);
  std::filesystem::create_directory(other.folder());
  std::filesystem::create_symlink(kept / "rank-1", other.folder() / "rank-1");
  CHECK_FALSE(other.join({.host = "n1", .pid = 12}));
  CHECK(fourfold::harness::read_bytes(kept / "rank-1") == "mine");
}
