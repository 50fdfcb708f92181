// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/exit_status.hpp>
#include <fourfold/telemetry/metrics_file.hpp>
#include <fourfold/telemetry/own_files.hpp>
#include <fourfold/telemetry/report.hpp>
#include <fourfold/telemetry/status_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/stat.h>

#include <filesystem>
#include <span>
#include <string>
#include <utility>

using Catch::Matchers::ContainsSubstring;
using fourfold::ExitCode;
using fourfold::UserError;
using fourfold::harness::files_below;
using fourfold::harness::ScratchFolder;
using namespace fourfold::telemetry;
namespace fs = std::filesystem;

namespace {

constexpr OutputsOfRun everything{
    .config = true, .report = true, .trace = "{\"ours\":1,", .timeline = "<!-- ours"};

/// What is said of a folder; empty: a run may begin there.
std::string refusal(const fs::path& log_dir, const OutputsOfRun& outputs = everything) {
  try {
    refuse_foreign_files(log_dir, outputs);
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::config);
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("what a run has written is its own to write again", "[own_files]") {
  const ScratchFolder dir;
  CHECK(refusal(dir / "absent").empty());
  CHECK(refusal(dir.path()).empty());
  const auto effective = fourfold::runfile::parse_run_config(
      "[model]\nlayers = 1\n[data]\ntrain = [\"t\"]\n", "run.toml");
  const std::string config = fourfold::runfile::print_run_config(effective);
  dir.write("config.toml", std::string(effective_config_mark) + "\n" + config);
  MetricsFile metrics(dir / "metrics.jsonl");
  StatusFile status(dir / "status.json");
  for (MetricSink* const sink :
       {static_cast<MetricSink*>(&metrics), static_cast<MetricSink*>(&status)}) {
    RunStart start;
    start.steps = 4;
    sink->start(start, 1000);
    sink->step({.step = 1, .loss = 3}, 1001);
    sink->end({.step = 1, .code = 75, .reason = "stopped"}, 1002);
  }
  const ReportedRun run = load_reported_run(dir.path());
  write_report(dir / "report.html", std::span(&run, 1));
  dir.write(
      "hang.json",
      "{\n  \"code\": 86,\n  \"kind\": \"late\",\n  \"reason\": \"\",\n  \"culprits\": []\n}\n");
  dir.write("trace.json", "{\"ours\":1,\"traceEvents\":[]}\n");
  dir.write("timeline.svg", "<!-- ours --><svg/>");
  for (const bool has_ended : {false, true}) {
    has_ended ? write_exit_status(dir / "exit.json", {}) : write_running(dir / "exit.json");
    CHECK(refusal(dir.path()).empty());
  }
  // As earlier versions wrote them, in the folder of a run.
  dir.write("config.toml", config);
  dir.write("trace.json", "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[]}\n");
  dir.write("report.html", "<!DOCTYPE html>\n<title>mine · fourfold</title>");
  CHECK(refusal(dir.path()).empty());
  fs::remove(dir / "exit.json");
  CHECK_THAT(refusal(dir.path()), ContainsSubstring("config.toml is not") &&
                                      ContainsSubstring("trace.json is not") &&
                                      ContainsSubstring("report.html is not"));
  dir.write("config.toml", "");
  dir.write("trace.json", "");
  dir.write("report.html", "");
  dir.write("metrics.jsonl",
            "{\"event\":\"sta\n{\"event\":\"resume\",\"time\":1}\n");  // cut by a full disk
  dir.write("status.json", "");                                        // by a crash
  CHECK(refusal(dir.path()).empty());
}

TEST_CASE("what no run has written is left alone, and named", "[own_files]") {
  const std::pair<const char*, const char*> foreign[] = {
      {"config.toml", "[model]\nlayers = 1  # few\nhidden = 32\n"},
      {"config.toml", "# my run\n[model]\nlayers = 1\n"},
      {"config.toml", "[server]\nport = 8080  # http\n"},
      {"metrics.jsonl", "{\"loss\": 3.2, \"step\": 1}\n"},
      {"metrics.jsonl", "step,loss\n1,3.2\n"},
      {"attempts.jsonl", "monday: learned to swim\n"},
      {"exit.json", "{\"status\": \"ok\"}\n"},
      {"exit.json", "[1, 2]"},
      {"exit.json", "{\"code\": \"precious\"}"},
      {"exit.json", "{\"code\": 0, \"reason\": \"finished\"}"},
      {"exit.json", "{\"code\": null, \"reason\": \"running\"}"},
      {"status.json", "{\"state\": \"CA\", \"zip\": \"94110\"}"},
      {"status.json", "{\"state\": \"running\", \"step\": 3, \"pid\": 12}"},
      {"metrics.jsonl", "{\"event\":\"wandb\"}\n"},
      {"metrics.jsonl",
       "{\"event\":\"epoch\",\"time\":1700000000}\n{\"event\":\"start\",\"time\":1}\n"},
      {"metrics.jsonl", "{\"event\":\"step\",\"loss\":3}\n"},
      {"attempts.jsonl", "{\"event\": \"jump\", \"time\": 3}\n"},
      {"attempts.jsonl", "7\n{\"event\":\"begin\",\"time\":1}\n"},
      {"config.toml", "[model]\nlayers = 1                              # few\n"},
      {"report.html", "<!DOCTYPE html>\n<title>about · fourfold</title>"},
      {"trace.json", "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[]}"},
      {"hang.json", "{\"code\": 86, \"kind\": \"late\", \"reason\": \"the bus\"}"},
      {"status.json", "{\"code\": 200}"},
      {"hang.json", "{\"reason\": \"a washing line\"}"},
      {"hang.json", "{\"code\": 12, \"name\": \"a washing line\"}"},
      {"report.html", "<!DOCTYPE html>\n<title>my report</title>"},
      {"trace.json", "{\"schemaVersion\": 1, \"traceEvents\": []}"},
      {"timeline.svg", "<svg width=\"3\"/>"},
  };
  for (const auto& [name, text] : foreign) {
    const ScratchFolder dir;
    dir.write(name, text);
    const auto before = files_below(dir.path());
    INFO(name << ": " << text);
    CHECK_THAT(refusal(dir.path()),
               ContainsSubstring((dir / name).string() + " is not a file that fourfold wrote"));
    CHECK(files_below(dir.path()) == before);
  }
}

TEST_CASE("only what is going to be written is looked at", "[own_files]") {
  const ScratchFolder dir;
  dir.write("config.toml", "[model]\nlayers = 1\n");
  dir.write("report.html", "mine");
  dir.write("trace.json", "mine");
  CHECK(refusal(dir.path(), {.config = false}).empty());
  CHECK_THAT(refusal(dir.path(), {}), ContainsSubstring("config.toml"));
  CHECK_THAT(refusal(dir.path(), {.config = false, .report = true}),
             ContainsSubstring("report.html") && !ContainsSubstring("trace.json"));
  const std::string all = refusal(dir.path());
  CHECK_THAT(all, ContainsSubstring("config.toml") && ContainsSubstring("report.html") &&
                      ContainsSubstring("trace.json"));
}

TEST_CASE("what is no regular file is in the way, and nothing waits for it", "[own_files]") {
  for (const char* const name : {"exit.json", "metrics.jsonl", "config.toml"}) {
    const ScratchFolder dir;
    REQUIRE(::mkfifo((dir / name).c_str(), 0600) == 0);
    CHECK_THAT(refusal(dir.path()), ContainsSubstring("is a link, a device, a pipe or a socket"));
    fs::remove(dir / name);
    fs::create_directory(dir / name);
    CHECK_THAT(refusal(dir.path()), ContainsSubstring("is a folder"));
    fs::remove(dir / name);
    fs::create_symlink("nowhere", dir / name);
    CHECK_THAT(refusal(dir.path()), ContainsSubstring("is a link"));
    CHECK_FALSE(may_append_events(dir / name));
  }
}
