// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/exit_status.hpp>
#include <fourfold/telemetry/metrics.hpp>
#include <fourfold/telemetry/own_files.hpp>
#include <fourfold/telemetry/report.hpp>
#include <fourfold/telemetry/status_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <span>
#include <string>
#include <utility>

using Catch::Matchers::ContainsSubstring;
using fourfold::ExitCode;
using fourfold::UserError;
using fourfold::harness::files_below;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;
using fourfold::harness::write_bytes;
using namespace fourfold::telemetry;
namespace fs = std::filesystem;

namespace {

constexpr OutputsOfRun everything{
    .config = true,
    .report = true,
    .trace = fourfold::io::OwnFile{.mark = "{\"ours\":1,", .maker = {}},
    .timeline = fourfold::io::OwnFile{.mark = "<!-- ours", .maker = {}}};

/// As versions without a mark wrote it.
constexpr const char* older_report =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" "
    "content=\"width=device-width, initial-scale=1\"/><title>mine · fourfold</title><style>\n"
    ":root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--text:#1b1f26";

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
    sink->end({.step = 1, .code = ExitCode{75}, .reason = "stopped"}, 1002);
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
  dir.write("report.html", older_report);
  CHECK(refusal(dir.path()).empty());
  fs::remove(dir / "exit.json");
  const std::string alone = refusal(dir.path());
  CHECK_THAT(alone, ContainsSubstring("config.toml is not") && !ContainsSubstring("report.html"));
  for (const char* const name : {"config.toml", "trace.json", "report.html", "status.json"}) {
    dir.write(name, std::string(3, '\0'));
    CHECK_THAT(refusal(dir.path()), !ContainsSubstring(name));
    dir.write(name, "");
  }
  CHECK(refusal(dir.path()).empty());
}

TEST_CASE("what a full disk or a crash has left of a run's file is still its own", "[own_files]") {
  const ScratchFolder dir;
  MetricsFile metrics(dir / "metrics.jsonl");
  StatusFile status(dir / "status.json");
  RunStart start;
  start.rank_hosts = {"node1"};
  metrics.start(start, 1000);
  status.start(start, 1000);
  write_exit_status(dir / "exit.json", {.code = ExitCode::stopped_saved, .reason = "time"});
  dir.write(
      "hang.json",
      "{\n  \"code\": 86,\n  \"kind\": \"late\",\n  \"reason\": \"\",\n  \"culprits\": []\n}");
  for (const char* const name : {"metrics.jsonl", "status.json", "exit.json", "hang.json"}) {
    const std::string whole = read_bytes(dir / name);
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
      dir.write(name, whole.substr(0, bytes));
      INFO(name << " cut at " << bytes);
      REQUIRE(refusal(dir.path()) == "");
    }
    dir.write(name, whole);
  }
  // The next start closes a line that was cut, and goes on after it.
  const std::string line = read_bytes(dir / "metrics.jsonl");
  for (std::size_t bytes = 0; bytes < line.size(); ++bytes) {
    const std::string rest = std::string(bytes % 5, '\0') + line.substr(0, bytes) + "\n" + line;
    dir.write("metrics.jsonl", rest);
    INFO(rest);
    REQUIRE(refusal(dir.path()) == "");
  }
}

TEST_CASE("attempts.jsonl of which the head was cut off is still its own", "[own_files]") {
  const ScratchFolder dir;
  dir.write("attempts.jsonl",
            "{\"event\":\"released\",\"time\":1.7e9,\"job\":\"7\",\"restart\":0,\"nodes\":2}\n");
  CHECK(refusal(dir.path()) == "");
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
      {"metrics.jsonl", "{\"event\":\"start\",\"time\":1700000000,\"user\":\"ada\"}\n"},
      {"metrics.jsonl", "{\"event\":\"step\",\"time\":1.7e9,\"step\":4,\"loss\":\"low\"}\n"},
      {"metrics.jsonl", "{\"event\":\"end\",\"time\":1.7e9,\"at\":\"the bridge\"}\n"},
      {"metrics.jsonl",
       "monday: ran\n{\"event\":\"end\",\"time\":1700000000,\"step\":1,"
       "\"code\":0,\"reason\":\"finished\"}\n"},
      {"metrics.jsonl", "{\"event\n[1, 2]\n"},
      {"attempts.jsonl", "{\"event\":\"begin\",\"time\":1700000000}\n"},
      {"attempts.jsonl",
       "{\"event\":\"refused\",\"time\":1.7e9,\"job\":7,\"restart\":0,"
       "\"code\":78,\"reason\":\"no\"}\n"},
      {"attempts.jsonl",
       "{\"event\":\"released\",\"time\":1.7e9,\"job\":\"7\",\"restart\":0,\"nodes\":\"all\"}\n"},
      {"exit.json",
       "{\"code\":null,\"reason\":\"r\",\"step\":\"up\",\"checkpoint\":null,"
       "\"bad_nodes\":[],\"retry\":null}"},
      {"exit.json",
       "{\"code\":null,\"reason\":\"r\",\"step\":1,\"checkpoint\":null,"
       "\"bad_nodes\":[1],\"retry\":null}"},
      {"exit.json", "{\n  \"code\": of honour"},
      {"status.json",
       "{\"state\":\"running\",\"step\":1,\"steps\":2,\"loss\":\"sweet\","
       "\"validation_loss\":null,\"tokens_per_s\":1,\"checkpoint\":[1],"
       "\"checkpoint_step\":null,\"updated\":1700000000}"},
      {"status.json", "{\n  \"state\": \"CA\""},
      {"hang.json", "{\"code\":0,\"kind\":\"late\",\"reason\":\"\",\"culprits\":[]}"},
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

TEST_CASE("what cannot be read is in the way: it may be anybody's", "[own_files]") {
  const ScratchFolder dir;
  const fs::path log_dir = dir / "run";
  fs::create_directory(log_dir);
  for (const char* const name : {"status.json", "report.html", "metrics.jsonl"}) {
    write_bytes(log_dir / name, "private");
    fs::permissions(log_dir / name, fs::perms::none);
  }
  fs::permissions(dir.path(), fs::perms::all);
  fs::permissions(log_dir, fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec |
                               fs::perms::others_read);  // whatever the umask
  constexpr uid_t nobody = 65534;
  const bool is_root = ::geteuid() == 0;  // who may read everything
  REQUIRE((!is_root || ::seteuid(nobody) == 0));
  const std::string all = refusal(log_dir);
  REQUIRE((!is_root || ::seteuid(0) == 0));
  CHECK_THAT(all, ContainsSubstring("status.json cannot be read") &&
                      ContainsSubstring("report.html cannot be read") &&
                      ContainsSubstring("metrics.jsonl cannot be read"));
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
