// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "run_directory.hpp"
#include "same_on_ranks.hpp"

#include <fourfold/base/build_facts.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/rank_identity.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/device/process_memory.hpp>
#include <fourfold/kernels/runtime.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/runfile/run_key.hpp>
#include <fourfold/telemetry/exit_status.hpp>
#include <fourfold/train/mesh_layout.hpp>
#include <fourfold/train/stop_request.hpp>
#include <fourfold/train/trainer.hpp>

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

namespace {

using fourfold::ExitCode;
using fourfold::train_program::Arguments;
using fourfold::train_program::RunDirectory;
namespace comm = fourfold::comm;
namespace runfile = fourfold::runfile;
namespace telemetry = fourfold::telemetry;
namespace train = fourfold::train;

telemetry::RunStart facts_of(const comm::MpiRuntime& mpi) {
  telemetry::RunStart facts;
  facts.version = fourfold::build_facts().version;
  facts.device = fourfold::kernels::description();
  facts.rank_hosts = comm::all_gather_text(mpi.world(), mpi.host());
  for (const fourfold::LibraryFact& library : fourfold::build_facts().libraries) {
    facts.libraries.emplace_back(library.name, library.version);
  }
  return facts;
}

/// What has to be the same on all ranks.
std::vector<std::string> facts_to_agree_on(const runfile::RunConfig& config,
                                           const Arguments& arguments) {
  std::vector<std::string> lines = fourfold::train_program::lines_of(config);
  lines.push_back(fmt::format("--allow-change = {}", runfile::to_toml(arguments.allowed_changes)));
  lines.push_back(fmt::format("--dry-run = {}", arguments.dry_run));
  lines.push_back(fmt::format("version of fourfold = {}", fourfold::build_facts().version));
  return lines;
}

/// Needed only to show what the model writes, when it is too late to find the file missing.
void require_tokenizer(const runfile::EffectiveConfig& effective) {
  const std::string& tokenizer = effective.config.data.tokenizer;
  try {
    fourfold::data::open_tokenizer(tokenizer);
  } catch (const fourfold::UserError& error) {
    throw fourfold::UserError(
        error.code(), runfile::located(fmt::format("data.tokenizer = \"{}\" cannot be used ({})",
                                                   tokenizer, error.what()),
                                       effective.origins));
  }
}

telemetry::ExitStatus status_of(const train::RunResult& result, const std::string& log_dir) {
  telemetry::ExitStatus status{.code = result.code,
                               .reason = "finished",
                               .step = result.progress.step,
                               .checkpoint = result.checkpoint.string()};
  if (result.code != ExitCode::finished) {
    status.reason = fmt::format(
        "{}: {}", result.checkpoint.empty() ? "stopped before the first step" : "saved and stopped",
        train::name(result.reason));
  }
  if (result.reason == train::StopReason::stop_file) {
    status.reason += fmt::format("; remove {} to go on", train::stop_file(log_dir).string());
    status.hold = true;
  }
  return status;
}

void watch(comm::MpiRuntime& mpi, const runfile::WatchConfig& config,
           const RunDirectory& directory) {
  if (config.enabled) {
    mpi.watch({.limits = {config.deadline_s, config.silence_s},
               .on_hang = [&](const comm::HangVerdict& verdict, const std::string& report) {
                 directory.note_hang(verdict, report);
               }});
  }
}

ExitCode train_run(const Arguments& arguments, int argc, char** argv,
                   std::optional<RunDirectory>& directory) {
  fourfold::device::keep_heap_small();
  const train::StopSignals signals;  // first: a signal during the start is one too
  comm::MpiRuntime mpi(&argc, &argv);
  const runfile::EffectiveConfig effective =
      runfile::load_run_config(arguments.run_file, arguments.overrides);
  runfile::validate_data(effective.config, effective.origins);
  const comm::MeshShape shape = fourfold::train::mesh_of(effective, mpi.world().size());
  runfile::validate_batch(effective.config, shape.dp, effective.origins);
  directory.emplace(effective, mpi.world().rank(), arguments.dry_run);
  directory->open();
  fourfold::train_program::require_same_on_ranks(facts_to_agree_on(effective.config, arguments),
                                                 mpi.world());
  mpi.world().use(train::collectives_of(effective.config));
  watch(mpi, effective.config.watch, *directory);
  comm::Mesh mesh(shape, mpi.world());
  if (mpi.world().rank() == 0) {
    require_tokenizer(effective);
  }
  const fourfold::kernels::Runtime kernels;
  const train::TrainerOptions options{.allowed_changes = arguments.allowed_changes,
                                      .deadline_unix_s = train::deadline_from_environment(),
                                      .holds_run = [&] { return directory->is_ours(); },
                                      .facts = facts_of(mpi),
                                      .rehearses = arguments.dry_run};
  train::Trainer trainer(effective, mesh, options, &directory->metrics());
  if (arguments.dry_run) {
    trainer.rehearse();
    directory->finish({.code = ExitCode::finished,
                       .reason = "dry run: everything is in place",
                       .step = trainer.progress().step});
    return ExitCode::finished;
  }
  const train::RunResult result = trainer.run();
  directory->finish(status_of(result, effective.config.log.dir));
  return result.code;
}

ExitCode print_config(const Arguments& arguments) {
  fmt::print("{}", runfile::print_run_config(
                       runfile::load_run_config(arguments.run_file, arguments.overrides)));
  return ExitCode::finished;
}

/// Tells exit.json of an error. One that comes before the run file is read, or from it, is told as
/// well if log.dir can be found: the end of an earlier start must not stay.
void note_failure(const Arguments& arguments, std::optional<RunDirectory>& directory, ExitCode code,
                  const std::string& message) {
  const fourfold::RankIdentity& self = fourfold::rank_identity();
  if (arguments.print_config || (self.rank != 0 && self.end_all_ranks == nullptr)) {
    return;  // not a run; or one of several that all fail for the same reason
  }
  if (!directory) {
    runfile::EffectiveConfig refused;
    try {
      refused.config.log.dir = runfile::log_dir_of(arguments.run_file, arguments.overrides);
    } catch (const fourfold::Error&) {
      return;  // nobody knows where log.dir is
    }
    directory.emplace(refused, self.rank, arguments.dry_run);
  }
  directory->fail(code, message);
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
  return fourfold::program::run(
      "fourfold train",
      [&] {
        if (const auto end = fourfold::program::parse(command, argc, argv)) {
          return *end;
        }
        return arguments.print_config ? print_config(arguments)
                                      : train_run(arguments, argc, argv, directory);
      },
      [&](ExitCode code, const std::string& message) {
        note_failure(arguments, directory, code, message);
      });
}
