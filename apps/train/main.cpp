// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "run_directory.hpp"

#include <fourfold/base/build_facts.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/kernels/runtime.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/train/trainer.hpp>

#include <fmt/format.h>

#include <optional>
#include <string>

namespace {

using fourfold::ExitCode;
namespace comm = fourfold::comm;
namespace train = fourfold::train;

train::RunStart facts_of(const comm::MpiRuntime& mpi) {
  train::RunStart facts;
  facts.version = fourfold::build_facts().version;
  facts.device = fourfold::kernels::description();
  facts.rank_hosts = comm::all_gather_text(mpi.world(), mpi.host());
  for (const fourfold::LibraryFact& library : fourfold::build_facts().libraries) {
    facts.libraries.emplace_back(library.name, library.version);
  }
  return facts;
}

/// Trains or rehearses; what goes wrong on the way is written to exit.json before it is thrown on.
ExitCode run_trainer(const train::EffectiveConfig& effective, comm::Mesh& mesh,
                     const train::TrainerOptions& options, bool dry_run,
                     fourfold::train_program::RunDirectory* directory) {
  std::int64_t step = 0;
  std::string checkpoint;
  try {
    train::Trainer trainer(effective, mesh, options,
                           directory != nullptr ? &directory->metrics() : nullptr);
    train::RunResult result;
    if (dry_run) {
      trainer.rehearse();
      result.progress = trainer.progress();
    } else {
      result = trainer.run();
    }
    step = result.progress.step;
    checkpoint = result.checkpoint.string();
    if (directory != nullptr) {
      const bool finished = result.code == ExitCode::finished;
      const std::string reason =
          dry_run    ? "dry run: everything is in place"
          : finished ? "finished"
                     : fmt::format("saved and stopped: {}", train::name(result.reason));
      directory->finish({.step = step, .code = static_cast<int>(result.code), .reason = reason},
                        checkpoint);
    }
    return result.code;
  } catch (const fourfold::Error& error) {
    if (directory != nullptr) {
      directory->fail(error);
    } else if (!dry_run) {
      fourfold::train_program::record_failure(effective.config.log.dir, error);
    }
    throw;
  }
}

ExitCode train_run(const fourfold::train_program::Arguments& arguments, int argc, char** argv) {
  if (arguments.print_config) {
    fmt::print("{}", train::print_run_config(
                         train::load_run_config(arguments.run_file, arguments.overrides)));
    return ExitCode::finished;
  }
  const comm::MpiRuntime mpi(&argc, &argv);
  const train::EffectiveConfig effective =
      train::load_run_config(arguments.run_file, arguments.overrides);
  const train::MeshConfig& mesh_config = effective.config.mesh;
  comm::Mesh mesh(comm::resolve_mesh(mesh_config.pp, mesh_config.dp, mesh_config.cp, mesh_config.tp,
                                     mpi.world().size()),
                  mpi.world());
  train::validate_batch(effective.config, mesh.shape().dp, effective.origins);
  const fourfold::kernels::Runtime kernels;
  const train::StopSignals signals;
  const train::TrainerOptions options{.allowed_changes = arguments.allowed_changes,
                                      .deadline_unix_s = train::deadline_from_environment(),
                                      .facts = facts_of(mpi)};
  std::optional<fourfold::train_program::RunDirectory> directory;
  if (mpi.world().rank() == 0) {
    directory.emplace(effective, arguments.dry_run);
  }
  return run_trainer(effective, mesh, options, arguments.dry_run,
                     directory ? &*directory : nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{
      "Trains a transformer language model as a run file says. Start it under MPI with one rank "
      "per core or device; started again it goes on from its newest checkpoint, on any number of "
      "ranks.",
      "fourfold train"};
  fourfold::train_program::Arguments arguments;
  fourfold::train_program::describe(command, arguments);
  return fourfold::program::run("fourfold train", [&] {
    if (const auto end = fourfold::program::parse(command, argc, argv)) {
      return *end;
    }
    return train_run(arguments, argc, argv);
  });
}
