// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "status.hpp"

#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>

#include <string>

namespace {

using fourfold::ExitCode;
namespace status = fourfold::status_program;

const char* const more_help = R"(
On a terminal the page of `fourfold status` is drawn over itself; elsewhere a line comes whenever
the state, a checkpoint or a STOP or SAVE file changes. Ctrl-C ends it, and the run does not notice.

EXAMPLES
  fourfold watch runs/first                   until the job is over
  fourfold watch --chain runs/first           until no job of the chain goes on with it
  fourfold watch runs/first && ./evaluate.sh  when it has finished

EXIT CODES
  That of the run when it is over, among them
)";

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{"Shows where a run is, again and again until it is over, without touching it.",
                   "fourfold watch"};
  std::string run;
  double interval_s = 2;
  bool chain = false;
  command
      .add_option("RUN", run,
                  "Directory of a run (log.dir), its folder of checkpoints, or its run file")
      ->required();
  command.add_option("--interval", interval_s, "Time between two looks")
      ->type_name("SECONDS")
      ->check(fourfold::program::number_between(0.1, 86400))
      ->capture_default_str();
  command.add_flag("--chain", chain,
                   "Go on when the run has ended in a way after which it is started again: saved "
                   "and stopped, a node that failed, a hang");
  command.footer(more_help + fourfold::program::exit_codes_table(
                                 {ExitCode::data_corrupt, ExitCode::cannot_write,
                                  ExitCode::stopped_saved, ExitCode::config, ExitCode::node_fault,
                                  ExitCode::hang, ExitCode::no_progress}));
  return fourfold::program::run("fourfold watch", [&] {
    if (const auto end = fourfold::program::parse(command, argc, argv)) {
      return *end;
    }
    return status::watch(status::log_dir_of_run(run), interval_s, chain);
  });
}
