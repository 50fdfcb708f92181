// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/telemetry/exit_status.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/telemetry/run_files.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>
#include <regex>
#include <string>

using fourfold::ExitCode;
using namespace fourfold::telemetry;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;
using fourfold::harness::write_bytes;

namespace {

/// What the file says, but for the number after "time".
std::string without_time(const std::filesystem::path& file) {
  return std::regex_replace(read_bytes(file), std::regex("\"time\": [0-9.e+]+"), "\"time\": T");
}

}  // namespace

TEST_CASE("exit.json says code, reason and whether to try again", "[exit_status]") {
  ::unsetenv("SLURM_JOB_ID");  // of a job that runs this test
  ::unsetenv("SLURM_RESTART_COUNT");
  const ScratchFolder dir;
  const auto file = dir / "exit.json";
  const ExitStatus status{
      ExitCode::node_fault, "rank 3 of 8 is gone (\"node7\")", 120, "ckpt/step-100", {"node7"}};
  write_exit_status(file, status);
  CHECK(without_time(file) ==
        "{\n"
        "  \"code\": 85,\n"
        "  \"reason\": \"rank 3 of 8 is gone (\\\"node7\\\")\",\n"
        "  \"step\": 120,\n"
        "  \"checkpoint\": \"ckpt/step-100\",\n"
        "  \"bad_nodes\": [\n"
        "    \"node7\"\n"
        "  ],\n"
        "  \"retry\": true,\n"
        "  \"time\": T,\n"
        "  \"job\": null,\n"
        "  \"restart\": 0\n"
        "}\n");
  CHECK(read_exit(file).end == status);

  ExitStatus told = status;
  told.told_to_stop = true;
  write_exit_status(file, told);
  CHECK(without_time(file).find("\"retry\": true,\n  \"told_to_stop\": true,\n") !=
        std::string::npos);
  CHECK(read_exit(file).end == told);
  CHECK(is_exit_text(without_time(file)));

  write_exit_status(file, {ExitCode::finished, "finished", 200, "ckpt/step-200", {}});
  CHECK(read_exit(file).end->step == 200);
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) ==
        1);  // no temporary left
}

TEST_CASE("exit.json tells whose it is", "[exit_status]") {
  const ScratchFolder dir;
  const auto file = dir / "exit.json";
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_RESTART_COUNT");
  write_running(file);
  CHECK_FALSE(read_exit(file).is_of({.id = "7"}));  // written outside of all jobs
  CHECK(read_exit(file).is_of({}));
  const auto first_s = read_exit(file).unix_s;
  REQUIRE(first_s);
  CHECK(std::abs(*first_s - fourfold::unix_time_s()) < 600);
  write_running(file);
  CHECK(read_exit(file).unix_s > first_s);
  ::setenv("SLURM_JOB_ID", "77", 1);
  ::setenv("SLURM_RESTART_COUNT", "2", 1);
  for (const bool has_ended : {false, true}) {
    has_ended ? write_exit_status(file, {}) : write_running(file);
    const ExitRecord record = read_exit(file);
    CHECK(record.says_running == !has_ended);
    CHECK(record.end.has_value() == has_ended);
    CHECK(record.by == fourfold::BatchJob{.id = "77", .restarts = 2});
    CHECK(record.is_of({.id = "77", .restarts = 2, .chain = "70"}));
    CHECK_FALSE(record.is_of({.id = "77", .restarts = 3}));
    CHECK_FALSE(record.is_of({.id = "77", .restarts = 2, .launch = 1}));
    CHECK_FALSE(record.is_of({.id = "78", .restarts = 2}));
    CHECK_FALSE(record.is_of({}));
  }
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_RESTART_COUNT");
  write_bytes(file, R"({"reason": "running", "job": 7, "restart": "x"})");
  CHECK(read_exit(file).by == fourfold::BatchJob{});
}

TEST_CASE("only faults that pass are worth another start", "[exit_status]") {
  CHECK(worth_retrying(ExitCode::stopped_saved));
  CHECK(worth_retrying(ExitCode::node_fault));
  CHECK(worth_retrying(ExitCode::hang));
  for (ExitCode code :
       {ExitCode::finished, ExitCode::usage, ExitCode::data_corrupt, ExitCode::internal,
        ExitCode::cannot_write, ExitCode::config, ExitCode::no_progress}) {
    CHECK_FALSE(worth_retrying(code));
  }
}

TEST_CASE("a stop that a person asked for is not worth another start", "[exit_status]") {
  const ScratchFolder dir;
  const ExitStatus status{.code = ExitCode::stopped_saved,
                          .reason = "saved and stopped: STOP file",
                          .step = 3,
                          .checkpoint = "ckpt/step-3",
                          .hold = true};
  write_exit_status(dir / "exit.json", status);
  CHECK(read_bytes(dir / "exit.json").find("\"retry\": false") != std::string::npos);
  CHECK(read_exit(dir / "exit.json").end == status);
}

TEST_CASE("what a run did not live to know is null", "[exit_status]") {
  const ScratchFolder dir;
  const ExitStatus status{.code = ExitCode::config, .reason = "no such mesh"};
  write_exit_status(dir / "exit.json", status);
  CHECK(read_bytes(dir / "exit.json").find("\"step\": null") != std::string::npos);
  CHECK(read_exit(dir / "exit.json").end == status);
}

TEST_CASE("a run that has not ended says so in place of an earlier end", "[exit_status]") {
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_RESTART_COUNT");
  const ScratchFolder dir;
  const auto file = dir / "exit.json";
  write_exit_status(file, {ExitCode::finished, "finished", 200, "ckpt/step-200", {}});
  write_running(file);
  CHECK(without_time(file) ==
        "{\n"
        "  \"code\": null,\n"
        "  \"reason\": \"running\",\n"
        "  \"step\": null,\n"
        "  \"checkpoint\": null,\n"
        "  \"bad_nodes\": [],\n"
        "  \"retry\": null,\n"
        "  \"time\": T,\n"
        "  \"job\": null,\n"
        "  \"restart\": 0\n"
        "}\n");
  CHECK_FALSE(read_exit(file).end.has_value());
}

TEST_CASE("a reason that is not UTF-8 is written all the same", "[exit_status]") {
  const ScratchFolder dir;
  write_exit_status(dir / "exit.json", {ExitCode::config, "bad name \xff\xfe", 0, "", {}});
  CHECK(read_exit(dir / "exit.json").end->code == ExitCode::config);
}

TEST_CASE("what is no exit status reads as nothing", "[exit_status]") {
  const ScratchFolder dir;
  CHECK_FALSE(read_exit(dir / "absent.json").end.has_value());
  for (const char* text : {"", "{", "[]", "{}", "{\"code\":\"0\"}", "null",
                           "{\"code\":0,\"reason\":\"\",\"step\":0,\"checkpoint\":\"\",\"bad_"
                           "nodes\":[1],\"retry\":true}",
                           "{\"code\":0,\"reason\":\"\",\"step\":\"0\",\"checkpoint\":\"\",\"bad_"
                           "nodes\":[],\"retry\":true}",
                           "{\"code\":0,\"reason\":\"\",\"step\":0,\"checkpoint\":\"\",\"bad_"
                           "nodes\":[],\"retry\":null}"}) {
    write_bytes(dir / "bad.json", text);
    CHECK_FALSE(read_exit(dir / "bad.json").end.has_value());
  }
}

TEST_CASE("a directory that cannot be written is an error of its own", "[exit_status]") {
  try {
    write_exit_status("/proc/nonexistent/exit.json", {});
    FAIL("written");
  } catch (const fourfold::Error& error) {
    CHECK(error.code() == ExitCode::cannot_write);
  }
}

TEST_CASE("the directory of a run is made, but not inside a checkpoint", "[exit_status]") {
  const ScratchFolder dir;
  make_log_dir(dir / "deep" / "run");
  make_log_dir(dir / "deep" / "run");  // is there already
  write_running(RunFiles(dir / "deep" / "run").exit_status());
  write_bytes(dir / "deep" / "MANIFEST.json", "{}");
  make_log_dir(dir / "deep" / "other");  // another program's manifest
  write_bytes(dir / "deep" / "index.h5", "");
  CHECK_THROWS_AS(make_log_dir(dir / "deep" / "third"), fourfold::UserError);
  CHECK_FALSE(std::filesystem::exists(dir / "deep" / "third"));
  write_bytes(dir / "file", "");
  CHECK_THROWS_AS(make_log_dir(dir / "file" / "run"), fourfold::UserError);
}

TEST_CASE("a run that goes on is told from one that left rubbish", "[exit_status]") {
  const ScratchFolder dir;
  const auto file = dir / "exit.json";
  CHECK_FALSE(read_exit(file).says_running);
  write_running(file);
  CHECK(read_exit(file).says_running);
  write_exit_status(file, {.code = ExitCode::finished, .reason = "running"});
  CHECK_FALSE(read_exit(file).says_running);
  for (const char* const text : {"", "{", "null", "[\"running\"]", "{\"reason\": 7}"}) {
    write_bytes(file, text);
    CHECK_FALSE(read_exit(file).says_running);
  }
}

TEST_CASE("a code that no process ends with is no end", "[exit_status]") {
  const ScratchFolder dir;
  const auto file = dir / "exit.json";
  for (const char* const code :
       {"-1", "256", "4294967296", "1e300", "99999999999999999999", "0.0"}) {
    write_bytes(file, std::string(R"({"code":)") + code +
                          R"(,"reason":"","step":1,"checkpoint":"","bad_nodes":[],"retry":false})");
    CHECK_FALSE(read_exit(file).end);
  }
}
