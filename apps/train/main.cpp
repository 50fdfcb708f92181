// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_directory.hpp"
#include "training.hpp"

#include <fourfold/program/command_line.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/runfile/run_key.hpp>
#include <fourfold/train/load_run.hpp>

#include <fmt/format.h>

#include <optional>
#include <string>

namespace {

using fourfold::ExitCode;
using fourfold::train_program::Arguments;
using fourfold::train_program::RunDirectory;
namespace runfile = fourfold::runfile;

ExitCode print_config(const Arguments& arguments) {
  const auto effective = fourfold::train::load_run(arguments.run_file, arguments.overrides);
  fourfold::program::enable_verbose_log();
  runfile::log_remarks(effective);
  fourfold::program::print_text(runfile::print_run_config(effective));
  return ExitCode::finished;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{
      "Trains a transformer language model as a run file says. Start it under MPI with one rank "
      "per core or device; started again it goes on from its newest checkpoint, on any number of "
      "ranks.",
      "fourfold train"};
  Arguments arguments;
  fourfold::train_program::describe(command, arguments);
  std::optional<RunDirectory> directory;  // outlives the run: a failure is told through it
  fourfold::set_remedies(runfile::run_remedies());
  return fourfold::program::run(
      "fourfold train",
      [&] {
        if (const auto end = fourfold::program::parse(
                command, argc, argv, fourfold::runfile::keys_called,
                [](const std::string& part) { return fourfold::runfile::run_file_help(part); })) {
          if (*end == ExitCode::usage) {
            fourfold::train_program::note_wrong_command_line(arguments, {argv + 1, argv + argc});
          }
          return *end;
        }
        return arguments.print_config
                   ? print_config(arguments)
                   : fourfold::train_program::train_run(arguments, argc, argv, directory);
      },
      [&](ExitCode code, const std::string& message) {
        fourfold::train_program::note_failure(arguments, directory, code, message);
      });
}
