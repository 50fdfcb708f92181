// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "status.hpp"

#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>

namespace {

using fourfold::ExitCode;
namespace status = fourfold::status_program;

const char* const more_help = R"(
It reads the files in log.dir and asks neither the scheduler nor the job; it may be run by anybody
who may read them, on any machine that sees them.

EXAMPLES
  fourfold status runs/first                  where the run is, what it cost, its jobs
  fourfold status --short runs/*              one line per run
  fourfold status run.toml --json             for programs to read
  fourfold status runs/* --prometheus /var/lib/node_exporter/fourfold.prom
                                              for Prometheus, from cron say

EXIT CODES
)";

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{
      "Shows where runs are: step, loss, speed, when they will be done and whether that is before "
      "the end of their job, the newest checkpoint, the jobs so far, and the node-hours used and "
      "lost.",
      "fourfold status"};
  status::Request request;
  command
      .add_option("RUN", request.runs,
                  "Directory of a run (log.dir), its folder of checkpoints, or its run file; or a "
                  "folder of runs, which stands for all of them")
      ->required();
  CLI::Option* const json =
      command.add_flag("--json", request.json, "Print one JSON document, for programs to read");
  command.add_flag("--short", request.brief, "Print one line per run")->excludes(json);
  command
      .add_option("--prometheus", request.prometheus_file,
                  "Write the numbers to this file, whole or not at all, for the textfile collector "
                  "of Prometheus' node_exporter")
      ->check(fourfold::program::place_to_write())
      ->type_name("FILE");
  command.footer(more_help +
                 fourfold::program::exit_codes_table({ExitCode::config, ExitCode::cannot_write}) +
                 "They say whether the run could be looked at, not how it is.\n");
  return fourfold::program::run("fourfold status", [&] {
    if (const auto end = fourfold::program::parse(command, argc, argv)) {
      return *end;
    }
    return status::show(request);
  });
}
