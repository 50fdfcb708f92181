// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "training.hpp"

#include "run_end.hpp"

#include <fourfold/base/build_facts.hpp>
#include <fourfold/base/clock.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/standstill.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/device/process_memory.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/kernels/runtime.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/runfile/run_key.hpp>
#include <fourfold/telemetry/exit_status.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/first_look.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/matmul_tuning_file.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/same_tokens.hpp>
#include <fourfold/train/stop_request.hpp>
#include <fourfold/train/trainer.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::train_program {
namespace {

telemetry::RunStart facts_of(const comm::MpiRuntime& mpi) {
  telemetry::RunStart facts;
  facts.version = build_facts().version;
  facts.device = kernels::description();
  facts.rank_hosts = comm::all_gather_text(mpi.world(), mpi.host());
  for (const LibraryFact& library : build_facts().libraries) {
    facts.libraries.emplace_back(library.name, library.version);
  }
  return facts;
}

/// What has to be the same on all ranks.
std::vector<std::string> facts_to_agree_on(const runfile::RunConfig& config,
                                           const Arguments& arguments) {
  std::vector<std::string> lines = train::lines_of(config);
  lines.push_back(
      format_message("--allow-change = {}", runfile::to_toml(arguments.allowed_changes)));
  lines.push_back(format_message("--dry-run = {}", arguments.dry_run));
  return lines;
}

/// Needed only to show what the model writes, when it is too late to find the file missing. One
/// that the record of the token files names may have been left behind when these were copied here.
void require_tokenizer(const runfile::EffectiveConfig& effective) {
  const std::string& tokenizer = effective.config.data.tokenizer;
  if (tokenizer == runfile::unknown_tokenizer_name) {
    return;
  }
  const auto origin = effective.origins.find("data.tokenizer");
  const bool is_derived = origin != effective.origins.end() && origin->second.where().empty();
  try {
    data::open_tokenizer(tokenizer);
  } catch (const UserError& error) {
    const std::string what =
        format_message("data.tokenizer = \"{}\"{} cannot be used ({})", tokenizer,
                       is_derived ? ", " + origin->second.str() + "," : "", error.what());
    if (is_derived) {
      log::warning(
          format_message("{}; training does without, sample and export will need it: set "
                         "data.tokenizer to where it is now, or name it to them",
                         what));
      return;
    }
    throw UserError(
        error.code(),
        runfile::located(format_message("{}; set data.tokenizer to where it is now", what),
                         effective.origins));
  }
}

telemetry::ExitStatus status_of(const train::RunResult& result, const std::string& log_dir) {
  telemetry::ExitStatus status{.code = result.code,
                               .reason = "finished",
                               .step = result.progress.step,
                               .checkpoint = result.checkpoint.string()};
  if (result.code != ExitCode::finished) {
    status.reason = telemetry::stop_reason(*status.checkpoint, train::name(result.reason));
  }
  if (result.reason == train::StopReason::stop_file) {
    status.reason +=
        fmt::format("; remove {} to go on", telemetry::RunFiles(log_dir).stop().string());
    status.hold = true;
  }
  return status;
}

/// What rank 0 finds in log.dir, known to all.
bool is_told_finished(const RunDirectory& directory, comm::Communicator& world) {
  std::int64_t told = 0;
  comm::run_on_root(world, [&] { told = directory.is_finished() ? 1 : 0; });
  return comm::all_reduce_scalar(world, told, comm::ReduceOp::max) != 0;
}

/// Work of a start that another one may take over from meanwhile: it learns of it in whichever call
/// fails first, which may be any that writes.
ExitCode while_ours(const RunDirectory& directory, const std::function<ExitCode()>& work) {
  try {
    return work();
  } catch (const UserError& error) {
    if (error.code() == ExitCode::cannot_write) {
      directory.require_ours();
    }
    throw;
  }
}

ExitCode rehearse(train::Trainer& trainer, RunDirectory& directory) {
  trainer.rehearse();
  directory.finish({.code = ExitCode::finished,
                    .reason = "dry run: everything is in place",
                    .step = trainer.progress().step});
  return ExitCode::finished;
}

ExitCode make_steps(train::Trainer& trainer, train::MatmulTuningFile& choices,
                    RunDirectory& directory, const std::string& log_dir) {
  if (trainer.has_nothing_to_do()) {
    log::info(
        format_message("step {} is made, and no more are wanted (train.steps): nothing is left to "
                       "do, and {} stays as it is; raise train.steps to train on",
                       trainer.progress().step, log_dir));
    return ExitCode::finished;
  }
  if (trainer.stop_while_finished() != train::StopReason::none) {
    log::info(format_message(
        "stopped before the first step: {}; the run stays finished at step {}, and {} stays as it "
        "is",
        train::name(trainer.stop_while_finished()), trainer.progress().step, log_dir));
    return ExitCode::stopped_saved;
  }
  const train::RunResult result = trainer.run();
  try_to("keep the choices of products", [&] { choices.write(); });
  directory.finish(status_of(result, log_dir));
  return result.code;
}

void watch(comm::MpiRuntime& mpi, const runfile::WatchdogConfig& config,
           const RunDirectory& directory) {
  if (config.enabled) {
    mpi.watch({.limits = {config.deadline_s, config.silence_s},
               .on_hang = [&](const comm::HangDiagnosis& verdict,
                              const std::string& report) { directory.note_hang(verdict, report); },
               .on_end = io::give_back_provisional_leases});
  }
}

}  // namespace

ExitCode train_run(const Arguments& arguments, int argc, char** argv,
                   std::optional<RunDirectory>& directory) {
  device::keep_heap_small();
  const train::StopSignals signals(
      program::hangup_was_ignored());  // first: one during the start is one too
  const StandstillWatch standstill_watch;
  const double began_unix_s = unix_time_s();
  const auto early = config_before_mpi(arguments);
  if (early && early->config.mesh.shape.pp > 1) {
    device::load_kernels_first();
  }
  auto startup_watchdog = early ? watch_start(early->config, arguments.dry_run) : nullptr;
  comm::MpiRuntime mpi(&argc, &argv);
  mpi.require_one_build(build_name());
  runfile::EffectiveConfig effective;
  // Before a lease is taken: one rank that finds another run file, or none, refuses for all.
  const auto failure = comm::capture_failure([&] {
    effective = early ? *early : train::load_run(arguments.run_file, arguments.overrides);
    runfile::validate_data(effective.config, effective.origins);
  });
  refuse_blind_nodes(failure ? std::nullopt : std::optional(effective.config), failure,
                     arguments.dry_run, mpi);
  comm::throw_if_any_failed(mpi.world(), failure);
  train::require_same_on_ranks(facts_to_agree_on(effective.config, arguments), mpi.world());
  startup_watchdog.reset();  // all ranks have come, and have MPI to ask who stands still
  train::ResolvedRun run = train::resolve_run(effective, mpi.world());
  train::look_before_lease(effective.config, arguments.allowed_changes, mpi.world());
  directory.emplace(effective, mpi.world().rank(), arguments.dry_run, arguments.run_file);
  directory->open();
  return while_ours(*directory, [&] {
    directory->agree_on_holder(mpi.world());
    watch(mpi, effective.config.watchdog, *directory);
    comm::Communicator& world =
        mpi.device_world({.may_share = effective.config.mesh.share_devices,
                          .deadline_s = effective.config.watchdog.deadline_s,
                          .needs_kernels_first = run.mesh.pp > 1});
    world.use(effective.config.mesh.host_collectives);
    comm::Mesh mesh(run.mesh, world);
    if (mpi.world().rank() == 0) {
      require_tokenizer(effective);
    }
    const kernels::Runtime kernels;
    train::MatmulTuningFile choices(effective.config, mpi.world());
    const train::TrainerOptions options{
        .allowed_changes = arguments.allowed_changes,
        .deadline_unix_s = train::deadline_from_environment(began_unix_s),
        .warning_s = train::warning_from_environment(),
        .holds_run = [&] { return directory->is_ours(); },
        .facts = facts_of(mpi),
        .rehearses = arguments.dry_run,
        .is_told_finished = is_told_finished(*directory, mpi.world())};
    train::Trainer trainer(std::move(run), mesh, options, &directory->metrics());
    return arguments.dry_run ? rehearse(trainer, *directory)
                             : make_steps(trainer, choices, *directory, effective.config.log.dir);
  });
}

}  // namespace fourfold::train_program
