// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/io/own_file.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/telemetry/own_files.hpp>
#include <fourfold/telemetry/report.hpp>
#include <fourfold/telemetry/run_files.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace {

using fourfold::ExitCode;

/// Where the report goes when nobody says: one run keeps its own, several are compared in the
/// current directory.
std::filesystem::path usual_output(const std::vector<std::string>& run_dirs) {
  return run_dirs.size() == 1 ? fourfold::telemetry::RunFiles(run_dirs.front()).report()
                              : std::filesystem::path("comparison.html");
}

ExitCode make_report(std::vector<std::string> run_dirs, const std::string& output) {
  for (std::string& run_dir : run_dirs) {
    run_dir = fourfold::telemetry::log_dir_named(run_dir).string();
  }
  const std::filesystem::path file =
      output.empty() ? usual_output(run_dirs) : std::filesystem::path(output);
  fourfold::io::refuse_place_in_step(file);
  std::error_code ignored;  // a folder that is not there is no run's
  if (run_dirs.size() > 1 ||
      !std::filesystem::equivalent(run_dirs.front(), file.parent_path() / ".", ignored)) {
    fourfold::telemetry::refuse_place_of_run(file);
  }
  fourfold::io::refuse_foreign_file(
      file, fourfold::telemetry::own_report,
      output.empty() ? fourfold::Links::refuse : fourfold::Links::follow);
  std::vector<fourfold::telemetry::ReportedRun> runs;
  for (const std::string& run_dir : run_dirs) {
    runs.push_back(fourfold::telemetry::load_reported_run(run_dir));
  }
  fourfold::telemetry::write_report(output.empty() ? file : fourfold::io::followed(file), runs);
  fourfold::program::print("{}\n", file.string());
  return ExitCode::finished;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{
      "Makes the report of a run from its directory (log.dir of the run file): loss, learning "
      "rate, gradient norm, tokens/s and step times as one HTML file that opens without a network. "
      "Several directories are laid over each other, with the differences of their configurations. "
      "Runs that still go on can be looked at too.",
      "fourfold report"};
  std::vector<std::string> run_dirs;
  std::string output;
  command
      .add_option("DIR", run_dirs,
                  "Directory of a run, which holds metrics.jsonl, or its folder of checkpoints")
      ->required();
  command
      .add_option("-o,--output", output,
                  "File to write. Default: DIR/report.html, or comparison.html here for several")
      ->check(fourfold::program::place_to_write());
  command.footer(
      "\nEXAMPLES\n"
      "  fourfold report runs/first                 write runs/first/report.html\n"
      "  fourfold report runs/a runs/b -o ab.html   compare two runs\n"
      "\nEXIT CODES\n" +
      fourfold::program::exit_codes_table({ExitCode::config, ExitCode::cannot_write}));
  return fourfold::program::run("fourfold report", [&] {
    if (const auto end = fourfold::program::parse(command, argc, argv)) {
      return *end;
    }
    return make_report(run_dirs, output);
  });
}
