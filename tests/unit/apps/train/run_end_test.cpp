// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// What `fourfold train` leaves behind at its end: exit.json whatever else goes wrong.
#include "run_end.hpp"

#include "run_directory.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/batch/attempt_log.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/telemetry/metrics.hpp>
#include <fourfold/telemetry/own_files.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

using fourfold::ExitCode;
using fourfold::UserError;
using fourfold::batch::Attempt;
using fourfold::batch::AttemptLog;
using fourfold::batch::AttemptRecords;
using fourfold::train_program::RunDirectory;
using fourfold::train_program::write_run_end;
using namespace fourfold::runfile;
using namespace fourfold::telemetry;
using fourfold::harness::files_below;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;
using fourfold::harness::write_bytes;

namespace {

const ExitStatus done{.code = ExitCode::finished,
                      .reason = "finished",
                      .step = 9,
                      .checkpoint = "run/checkpoints/step-9"};

/// As a sink whose disk is full.
class FullSink : public MetricSink {
 public:
  void step(const StepRecord& /*record*/, double /*unix_time_s*/) override { fail(); }
  void end(const RunEnd& /*record*/, double /*unix_time_s*/) override { fail(); }

 private:
  static void fail() { throw UserError(ExitCode::cannot_write, "disk full"); }
};

/// Keeps warnings while it lives.
class Warnings {
 public:
  Warnings() {
    previous_ = fourfold::log::set_sink(
        [this](fourfold::log::Level, std::string_view line) { lines.emplace_back(line); });
  }
  ~Warnings() { fourfold::log::set_sink(previous_); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  std::vector<std::string> lines;

 private:
  fourfold::log::Sink previous_;
};

EffectiveConfig config_in(const ScratchFolder& dir) {
  return parse_run_config(
      "[model]\nlayers = 1\nhidden = 16\nheads = 2\nvocab = 257\ncontext = 8\n[data]\ntrain = "
      "[\"absent\"]\n[log]\nprogress = \"none\"\ndir = \"" +
          dir.path().string() + "\"\n",
      "run.toml");
}

/// What a start leaves that was killed on this machine.
std::string lease_of_the_dead() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  const auto me = fourfold::io::LeaseHolder::this_process();
  return fmt::format("fourfold-lease 1 aaaa {} {} {} - 0 12 -\n", me.host, me.processes, child);
}

std::size_t files_in(const ScratchFolder& dir) {
  return std::distance(std::filesystem::directory_iterator(dir.path()), {});
}

}  // namespace

TEST_CASE("a disk too full for metrics and report does not keep exit.json from saying the end",
          "[run_end]") {
  const ScratchFolder dir;
  const Warnings warnings;
  MetricsLog metrics;
  metrics.add(std::make_unique<FullSink>());
  REQUIRE_NOTHROW(write_run_end(dir.path(), done, metrics, true));  // no metrics.jsonl: no report
  CHECK(read_exit(dir / "exit.json").end == done);
  REQUIRE(warnings.lines.size() == 2);
  CHECK(warnings.lines[0].find("disk full") != std::string::npos);
  CHECK(warnings.lines[1].find("cannot write the report") != std::string::npos);
}

TEST_CASE("an exit.json that cannot be written is an error, and the metrics still end",
          "[run_end]") {
  const ScratchFolder dir;
  std::filesystem::create_directory(dir / "exit.json");
  write_bytes(dir / "exit.json" / "in_the_way", "");
  MetricsLog metrics;
  metrics.add(std::make_unique<MetricsFile>(dir / "metrics.jsonl"));
  CHECK_THROWS_AS(write_run_end(dir.path(), done, metrics, false), UserError);
  CHECK(read_bytes(dir / "metrics.jsonl").find("\"finished\"") != std::string::npos);
}

TEST_CASE("a start that is refused changes nothing of the run", "[run_directory]") {
  const ScratchFolder dir;
  write_exit_status(dir / "exit.json", done);
  write_bytes(dir / "FINISHED", "step 9\n");
  write_bytes(dir / ".status.json.tmp-0123456789abcdef", "half");
  write_bytes(dir / ".run-lease", lease_of_the_dead());
  const auto before = files_below(dir.path());
  const ExitCode code = GENERATE(ExitCode::usage, ExitCode::data_corrupt, ExitCode::cannot_write,
                                 ExitCode::config, ExitCode::no_progress);
  RunDirectory run(config_in(dir), GENERATE(0, 3), false);
  run.open();
  run.fail(code, "no such mesh");
  CHECK(files_below(dir.path()) == before);
}

TEST_CASE("a fault before the first step is told", "[run_directory]") {
  const ScratchFolder dir;
  write_exit_status(dir / "exit.json", done);
  const ExitCode code = GENERATE(ExitCode::internal, ExitCode::node_fault, ExitCode::hang);
  RunDirectory run(config_in(dir), GENERATE(0, 3), false);
  run.open();
  run.fail(code, "a bug, or a node");
  const auto status = read_exit(dir / "exit.json").end;
  REQUIRE(status.has_value());
  CHECK(status->code == code);
  CHECK_FALSE(status->step.has_value());
  CHECK_FALSE(status->checkpoint.has_value());
  CHECK_FALSE(std::filesystem::exists(dir / "metrics.jsonl"));  // nothing began, so nothing ended
}

TEST_CASE("a refused start of a job leaves one line in attempts.jsonl", "[run_directory]") {
  const ScratchFolder dir;
  const Attempt begun{.start = {.id = "7", .restarts = 1, .chain = "7"}, .began_unix_s = 1000};
  const AttemptLog log(dir / "attempts.jsonl");
  log.begin(begun);
  ::setenv("SLURM_JOB_ID", "7", 1);
  ::setenv("SLURM_RESTART_COUNT", "1", 1);
  const auto refuse = [&](int rank) {
    RunDirectory run(config_in(dir), rank, false);
    run.open();
    run.fail(ExitCode::config, "no such mesh");
  };
  const int rank = GENERATE(0, 3);
  refuse(rank);
  refuse(3);  // once is enough
  AttemptRecords records = log.read();
  REQUIRE(records.refused.size() == 1);
  CHECK(records.refused[0].start.id == "7");
  CHECK(records.refused[0].start.restarts == 1);
  CHECK(records.refused[0].code == ExitCode::config);
  CHECK(records.refused[0].reason == "no such mesh");
  CHECK(records.attempts[0].refused == records.refused[0]);
  // Behind its end, or in another job, the start is none of `fourfold job begin`.
  log.end(begun, {.unix_s = 1100});
  refuse(0);
  ::setenv("SLURM_JOB_ID", "8", 1);
  refuse(0);
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_RESTART_COUNT");
  refuse(0);
  CHECK(log.read().refused.size() == 1);
  CHECK(files_in(dir) == 1);
}

TEST_CASE("a folder that was not there does not stay of a start that is refused",
          "[run_directory]") {
  const ScratchFolder dir;
  EffectiveConfig config = config_in(dir);
  config.config.log.dir = (dir / "deep" / "run").string();
  RunDirectory run(config, 0, false);
  run.open();
  CHECK(std::filesystem::exists(dir / "deep" / "run" / ".run-lease"));
  run.fail(ExitCode::config, "no such mesh");
  CHECK(files_in(dir) == 0);
}

TEST_CASE("only a run that starts replaces config.toml", "[run_directory]") {
  const ScratchFolder dir;
  const std::string earlier = std::string(effective_config_mark) + "\nearlier";
  write_bytes(dir / "config.toml", earlier);
  RunDirectory run(config_in(dir), 0, false);
  run.open();
  CHECK(read_bytes(dir / "config.toml") == earlier);
  write_exit_status(dir / "exit.json", done);
  write_bytes(dir / "FINISHED", "step 9\n");
  run.metrics().start({});
  CHECK(read_bytes(dir / "config.toml").find("layers = 1") != std::string::npos);
  CHECK(read_exit(dir / "exit.json").says_running);
  CHECK_FALSE(std::filesystem::exists(dir / "FINISHED"));
}

TEST_CASE("a run file that is config.toml itself stays as it is", "[run_directory]") {
  const ScratchFolder dir;
  write_bytes(dir / "config.toml", "[model]\nlayers = 1\n");
  RunDirectory run(config_in(dir), 0, false, dir / "." / "config.toml");
  run.open();
  run.metrics().start({});
  CHECK(read_bytes(dir / "config.toml") == "[model]\nlayers = 1\n");
  RunDirectory other(config_in(dir), 0, true, dir / "other.toml");
  CHECK_THROWS_AS(other.open(), UserError);
}

TEST_CASE("an error is told with the newest step and checkpoint, recorded or not",
          "[run_directory]") {
  const ScratchFolder dir;
  EffectiveConfig config = config_in(dir);
  config.config.log.every_steps = 100;
  const int rank = GENERATE(0, 2);
  RunDirectory run(config, rank, false);
  run.open();
  RunStart start;
  start.first_step = 4;
  start.steps = 90;
  run.metrics().start(start);
  run.metrics().step({.step = 5, .step_s = 1});
  run.metrics().checkpoint({.step = 5, .path = "step-5"});
  run.metrics().step({.step = 6, .step_s = 1});
  run.fail(ExitCode::data_corrupt, "diverged");
  CHECK(read_exit(dir / "exit.json").end == ExitStatus{.code = ExitCode::data_corrupt,
                                                       .reason = "diverged",
                                                       .step = 6,
                                                       .checkpoint = "step-5"});
}

TEST_CASE("another rank tells of its error only if nobody has told the end", "[run_directory]") {
  const ScratchFolder dir;
  RunDirectory first(config_in(dir), 0, false);
  RunDirectory other(config_in(dir), 3, false);
  first.open();
  other.open();
  first.metrics().start({});
  other.metrics().start({});
  first.fail(ExitCode::data_corrupt, "rank 0's");
  other.fail(ExitCode::internal, "rank 3's");
  CHECK(read_exit(dir / "exit.json").end->reason == "rank 0's");
  write_running(dir / "exit.json");
  other.fail(ExitCode::internal, "rank 3's");
  CHECK(read_exit(dir / "exit.json").end->reason == "rank 3's");
}

TEST_CASE("nothing starts while a STOP file lies there", "[run_directory]") {
  const ScratchFolder dir;
  write_bytes(dir / "STOP", "");
  const bool dry_run = GENERATE(false, true);
  RunDirectory run(config_in(dir), 0, dry_run);
  try {
    run.open();
    FAIL("opened");
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::no_progress);
    CHECK(std::string(error.what()).find((dir / "STOP").string()) != std::string::npos);
  }
  CHECK(std::filesystem::exists(dir / "STOP"));
}

TEST_CASE("temporary files of killed starts go, and nothing else", "[run_directory]") {
  const ScratchFolder dir;
  for (const std::string name :
       {"status.json", "config.toml", "exit.json", "report.html", "trace.json"}) {
    write_bytes(dir / ("." + name + ".tmp-0123456789abcdef"), "half");
  }
  write_bytes(dir / ".run-lease-0123456789abcdef", "before it had its name");
  const std::vector<std::string> others{
      "notes.tmp-12",
      "status.json.tmp-",
      "status.json.tmp-old",
      "report.html.tmp-20261127",
      "config.toml.tmp-1",
      ".run-lease-notes",
      ".status.json.tmp-0123456789abcdef.bak",
      "metrics.jsonl",
      ".chain.sbatch.tmp-0123456789abcdef"};  // of `fourfold submit`, perhaps now
  for (const std::string& name : others) {
    write_bytes(dir / name, "{\"event\":\"eval\",\"time\":1,\"step\":0,\"loss\":3,\"tokens\":8}\n");
  }
  std::filesystem::create_directory(dir / ".start-watch-77-0");
  write_bytes(dir / ".start-watch-77-0/rank-3", "node1 12\n");
  RunDirectory run(config_in(dir), 0, false);
  run.open();
  CHECK(std::filesystem::exists(dir / ".start-watch-77-0"));
  run.metrics().start({});
  CHECK_FALSE(std::filesystem::exists(dir / ".start-watch-77-0"));
  for (const std::string& name : others) {
    CHECK(std::filesystem::exists(dir / name));
  }
  // And exit.json, .run-lease and its folder, config.toml, status.json, the events.
  CHECK(files_in(dir) == others.size() + 6);
}

TEST_CASE("a dry run touches no file, whatever its end", "[run_directory]") {
  const ScratchFolder dir;
  write_exit_status(dir / "exit.json", done);
  const bool fails = GENERATE(false, true);
  RunDirectory run(config_in(dir), 0, true);
  run.open();
  run.metrics().start({});
  if (fails) {
    run.fail(ExitCode::config, "no");
  } else {
    run.finish({.code = ExitCode::finished, .reason = "in place", .step = 0});
  }
  CHECK(read_exit(dir / "exit.json").end == done);
  CHECK(files_in(dir) == 1);
}
