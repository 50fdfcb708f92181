// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/batch/run_view.hpp>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

using namespace fourfold::batch;
using Catch::Approx;
using fourfold::ExitCode;
using fourfold::UserError;
using fourfold::harness::ScratchFolder;

namespace {

const std::string metrics =
    R"({"event":"start","time":1010,"from_step":0,"steps":100,"rank_hosts":["a","b"]}
{"event":"step","time":1100,"step":10,"loss":4,"step_s":10,"tokens_per_s":1000}
{"event":"eval","time":1105,"step":10,"loss":4.5}
{"event":"checkpoint","time":1110,"step":10,"path":"c/step-10"}
{"event":"step","time":1200,"step":19,"loss":3,"step_s":10,"tokens_per_s":1000}
)";
const std::string attempts =
    R"({"event":"begin","time":1000,"job":"7","restart":0,"chain":"7","nodes":2,"from_step":null}
)";
const std::string status = R"({"state":"running","step":18,"steps":100,"loss":3.1,
"validation_loss":4.5,"tokens_per_s":900,"step_s":11,"remaining_s":900,"deadline":1600,
"checkpoint":"c/step-10","checkpoint_step":10,"updated":1190,"code":null,"reason":null})";
const std::string is_running =
    R"({"code":null,"reason":"running","step":null,"checkpoint":null,"bad_nodes":[],"retry":null})";

/// A run after step 19, on two nodes; its clock stands at 1210. exit.json is not there: it would
/// be of the time of this test.
void write_run(const ScratchFolder& folder) {
  folder.write("metrics.jsonl", metrics);
  folder.write("attempts.jsonl", attempts);
  folder.write("status.json", status);
}

}  // namespace

TEST_CASE("a run is seen by its files", "[run_view]") {
  const ScratchFolder folder;
  write_run(folder);
  RunReader reader(folder.path());
  const RunView view = reader.look(1210);
  CHECK(view.verdict.state == RunState::running);
  CHECK(view.step == 19);  // metrics.jsonl is newer than status.json here
  CHECK(view.loss == 3);
  CHECK(view.steps == 100);
  CHECK(view.validation_loss == 4.5);
  CHECK(view.validation_step == 10);
  CHECK(view.checkpoint == "c/step-10");
  CHECK(view.checkpoint_step == 10);
  CHECK(view.checkpoint_unix_s == 1110);
  CHECK(view.verdict.last_word_unix_s == 1200);
  CHECK(view.remaining_s == 880);  // said to be 900 20 s ago
  REQUIRE(view.eta);
  CHECK(view.eta->in_time == false);
  CHECK(view.eta->more_jobs == 1);  // (880 - 390) / 600
  CHECK(view.node_hours.used == Approx(2 * 210.0 / 3600));
  CHECK(view.node_hours.lost == 0);
  CHECK_FALSE(view.stop_file);
}

TEST_CASE("a second look sees what has come since", "[run_view]") {
  const ScratchFolder folder;
  write_run(folder);
  RunReader reader(folder.path());
  CHECK(reader.look(1210).verdict.state == RunState::running);
  CHECK(reader.look(9000).verdict.state == RunState::silent);
  folder.write("STOP", "");
  folder.write("exit.json", R"({"code":75,"reason":"saved and stopped: STOP file","step":20,)"
                            R"("checkpoint":"c/step-20","bad_nodes":[],"retry":false})");
  folder.write("status.json", R"({"state":"ended","step":20,"steps":100,"loss":2.9,"step_s":11,
"remaining_s":800,"deadline":1600,"checkpoint":"c/step-20","checkpoint_step":20,"updated":1215,"code":75})");
  folder.write("metrics.jsonl",
               metrics + R"({"event":"checkpoint","time":1214,"step":20,"path":"c/step-20"}
{"event":"end","time":1215,"step":20,"code":75,"reason":"saved and stopped: STOP file"}
)");
  const RunView view = reader.look(5000);
  CHECK(view.verdict.state == RunState::stopped);
  CHECK_FALSE(view.verdict.retry);
  CHECK(view.stop_file);
  CHECK(view.step == 20);
  CHECK(view.checkpoint_unix_s == 1214);
  CHECK(view.remaining_s == 800);
  CHECK(view.eta->more_jobs == 2);  // 800 / 600
  REQUIRE(view.attempts.size() == 1);
  CHECK(view.attempts[0].ended);
  CHECK(view.node_hours.used == Approx(2 * 215.0 / 3600));
  CHECK(view.node_hours.lost == 0);
}

TEST_CASE("metrics.jsonl alone tells nearly all", "[run_view]") {
  const ScratchFolder folder;
  folder.write("metrics.jsonl", metrics);
  const RunView view = RunReader(folder.path()).look(1210);
  CHECK(view.verdict.state == RunState::running);
  CHECK(view.step == 19);
  CHECK(view.steps == 100);
  CHECK(view.checkpoint_step == 10);
  CHECK(view.checkpoint_unix_s == 1110);
  CHECK(view.remaining_s == 81 * 10 - 10);
  CHECK_FALSE(view.eta->in_time);
  CHECK(view.attempts.size() == 1);
}

TEST_CASE("an end that exit.json alone tells of is one of the newest attempt", "[run_view]") {
  const ScratchFolder folder;
  write_run(folder);
  folder.write("exit.json",
               R"({"code":86,"reason":"hang: rank 1","step":19,"checkpoint":"c/step-10",
"bad_nodes":["b"],"retry":true})");
  folder.write("hang.json", "{}");
  const RunView view = RunReader(folder.path()).look(1300);
  CHECK(view.verdict.state == RunState::failed);
  CHECK(view.verdict.code == ExitCode::hang);
  CHECK(view.verdict.retry);
  CHECK(view.hang_file);
  CHECK(view.attempts.back().code == ExitCode::hang);
  CHECK(view.node_hours.lost == Approx(2 * 90.0 / 3600));  // after the save at 1110
  CHECK(view.remaining_s == Approx(900 + 9 * 10));         // steps 11 to 19 are made again
}

TEST_CASE("a directory that is not there is a run that has not started", "[run_view]") {
  const ScratchFolder folder;
  CHECK(RunReader(folder / "absent").look(1000).verdict.state == RunState::none);
  CHECK(RunReader(folder.path()).look(1000).verdict.state == RunState::none);
  folder.write("file", "");
  for (const char* name : {"file", "file/run"}) {
    try {
      RunReader(folder / name).look(1000);
      FAIL("nothing was thrown");
    } catch (const UserError& error) {
      CHECK(error.code() == ExitCode::config);
    }
  }
}

TEST_CASE("whatever the files hold, there is an answer", "[run_view]") {
  const std::string huge = "99999999999999999999999999";
  const std::vector<std::string> bad{
      "",
      "{",
      "null",
      "[]",
      "7",
      status.substr(0, status.size() / 2),
      std::string("\x7f\x45\x4c\x46\0\0\xff\xfe\r\n", 10),
      std::string(1 << 20, '['),
      R"({"state":7,"step":-1,"steps":-100,"loss":-3,"step_s":-1,"remaining_s":-5,"deadline":-7,
"checkpoint":[],"checkpoint_step":-1,"updated":1190,"code":-1,"reason":{}})",
      R"({"state":"running","step":1e300,"steps":1e300,"loss":1e308,"step_s":1e308,"remaining_s":1e308,
"deadline":1e11,"checkpoint_step":1e300,"updated":1e11,"code":1e300})",
      R"({"state":"running","step":)" + huge + R"(,"steps":)" + huge +
          R"(,"updated":1190,"checkpoint_step":)" + huge + "}",
      R"({"state":"running","step":NaN,"updated":1190})",
      R"({"step":9007199254740992,"steps":1,"updated":1190,"step_s":0,"remaining_s":0,"deadline":1})",
      R"({"event":"begin","time":-1e308,"job":"","restart":-7,"chain":"","nodes":-3,"from_step":-1}
{"event":"begin","time":1e308,"job":"","restart":1e300,"chain":"","nodes":1e300,"from_step":1e300})",
      R"({"event":"end","time":1e308,"job":"7","restart":0,"code":1e300,"reason":"","step":-1,"retry":true})",
      R"({"code":)" + huge +
          R"(,"reason":"","step":-1,"checkpoint":"","bad_nodes":[],"retry":true})",
      R"({"code":0,"reason":"","step":1e300,"checkpoint":"","bad_nodes":[],"retry":true})",
  };
  const ScratchFolder folder;
  for (const char* name :
       {"status.json", "exit.json", "attempts.jsonl", "metrics.jsonl", "FINISHED"}) {
    for (const std::string& text : bad) {
      for (const bool after : {false, true}) {
        INFO(name << " " << text.substr(0, 120));
        write_run(folder);
        const bool lines = std::string_view(name).ends_with("jsonl");
        folder.write(name, after && lines ? (name[0] == 'a' ? attempts : metrics) + text : text);
        const RunView view = RunReader(folder.path()).look(1210);
        CHECK(view.step >= 0);
        CHECK(view.node_hours.used >= 0);
        CHECK(view.node_hours.lost >= 0);
        CHECK(view.node_hours.lost <= view.node_hours.used);
        CHECK((!view.remaining_s || *view.remaining_s >= 0));
        std::filesystem::remove(folder / name);
      }
    }
  }
}

TEST_CASE("what is no file is not waited for", "[run_view]") {
  for (const char* name : {"status.json", "exit.json", "attempts.jsonl", "metrics.jsonl",
                           "FINISHED", "STOP", "SAVE", "hang.json"}) {
    const ScratchFolder folder;
    write_run(folder);
    std::filesystem::remove(folder / name);
    REQUIRE(::mkfifo((folder / name).c_str(), 0600) == 0);
    CHECK(RunReader(folder.path()).look(1210).step >= 0);
    std::filesystem::remove(folder / name);
    std::filesystem::create_directory(folder / name);
    CHECK(RunReader(folder.path()).look(1210).step >= 0);
    std::filesystem::remove(folder / name);
    std::filesystem::create_symlink("/dev/zero", folder / name);
    CHECK(RunReader(folder.path()).look(1210).step >= 0);
  }
}

TEST_CASE("the starts of a run with more than a gigabyte of metrics are known", "[run_view]") {
  const ScratchFolder folder;
  write_run(folder);
  const auto file = folder / "metrics.jsonl";
  const std::size_t starts = RunReader(folder.path()).look(1210).attempts.size();
  REQUIRE(starts > 0);
  const std::int64_t step = RunReader(folder.path()).look(1210).step;
  std::filesystem::resize_file(file, (std::uintmax_t{1} << 30) + 4096);  // a hole takes no room
  std::ofstream(file, std::ios::app)
      << "\n{\"event\":\"step\",\"time\":1205,\"step\":" << step + 1 << ",\"loss\":2}\n";
  const auto view = RunReader(folder.path()).look(1210);
  CHECK(view.attempts.size() == starts);
  CHECK(view.step == step + 1);
}

TEST_CASE("exit.json is the newest start's, whatever the clocks say", "[run_view]") {
  const auto exit_of = [](const char* job, int restart, double unix_s, int code) {
    return fmt::format(
        R"({{"code":{},"reason":"told","step":19,"checkpoint":"c/step-10","bad_nodes":[],"retry":true,)"
        R"("time":{},"job":"{}","restart":{}}})",
        code, unix_s, job, restart);
  };
  const std::string first_end =
      R"({"event":"end","time":1300,"job":"7","restart":0,"code":75,"reason":"time limit","step":19,"retry":true}
)";
  const std::string second =
      R"({"event":"begin","time":1400,"job":"8","restart":0,"chain":"7","nodes":2,"from_step":10,"exit_time":1299}
)";
  const auto second_end = [](int code, bool retry) {
    return fmt::format(
        R"({{"event":"end","time":1450,"job":"8","restart":0,"code":{},"reason":"noted","step":null,"retry":{}}}
)",
        code, retry);
  };
  const ScratchFolder folder;
  const auto look = [&](const std::string& log, const std::string& exit) {
    folder.write("attempts.jsonl", attempts + first_end + log);
    folder.write("exit.json", exit);
    return RunReader(folder.path()).look(1460);
  };
  write_run(folder);
  const std::string first_told = exit_of("7", 0, 1299, 75);
  // The second has ended before its first step, and has written none: its noted end counts.
  const RunView failed = look(second + second_end(78, false), first_told);
  CHECK(failed.verdict.state == RunState::failed);
  CHECK(failed.verdict.code == ExitCode::config);
  CHECK(failed.verdict.reason == "noted");
  CHECK_FALSE(failed.verdict.retry);
  folder.write("FINISHED", "");  // of a run that was made longer
  CHECK(look(second + second_end(78, false), exit_of("7", 0, 1299, 0)).verdict.code ==
        ExitCode::config);
  std::filesystem::remove(folder / "FINISHED");
  CHECK(look(second + second_end(85, true), first_told).verdict.code == ExitCode::node_fault);
  // It goes on, and the first writes its end only now, or its node's clock is late.
  CHECK(look(second, exit_of("7", 0, 1401, 93)).verdict.state == RunState::starting);
  CHECK(look(second, first_told).verdict.state == RunState::starting);
  // Its own counts where no other was noted, by a clock that is behind, too.
  CHECK(look(second, exit_of("8", 0, 1390, 86)).verdict.code == ExitCode::hang);
  CHECK(look(second + second_end(86, true), exit_of("8", 0, 1440, 86)).verdict.retry);
  // And what its launcher knew better.
  const RunView killed = look(second + second_end(78, false), exit_of("8", 0, 1440, 86));
  CHECK(killed.verdict.code == ExitCode::config);
  CHECK_FALSE(killed.verdict.retry);
  // A restart of the first job is not that one; a start that nobody noted is one if it is later.
  CHECK(look(second, exit_of("7", 1, 1399, 86)).verdict.state == RunState::starting);
  CHECK(look(second + second_end(78, false), exit_of("", 0, 1459, 75)).verdict.state ==
        RunState::stopped);
  CHECK(look(second + second_end(78, false), exit_of("", 0, 1100, 75)).verdict.state ==
        RunState::failed);
}

TEST_CASE("a start that has begun is not the end of the one before", "[run_view]") {
  const ScratchFolder folder;
  write_run(folder);
  folder.write("exit.json", is_running);
  std::filesystem::last_write_time(folder / "exit.json",
                                   std::filesystem::file_time_type::clock::now());
  const double now = std::numeric_limits<double>::max();
  CHECK(RunReader(folder.path()).look(now).verdict.state == RunState::silent);
}
