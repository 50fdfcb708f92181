// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/telemetry/own_files.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/data_facts.hpp>
#include <fourfold/train/first_look.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace fourfold::train {
namespace {

/// The newest step that a folder holds; nothing where it is none, or the one of `steps` itself.
std::optional<std::string> newest_step_beside(const std::filesystem::path& folder,
                                              const std::filesystem::path& steps) {
  std::error_code failure;
  if (!std::filesystem::is_directory(folder, failure) ||
      std::filesystem::equivalent(folder, steps, failure)) {
    return std::nullopt;
  }
  const auto held = io::list_steps(folder);
  return held.empty() ? std::nullopt : std::optional(format_message("{}", held.back()));
}

/// Where the run wrote whose folder log.dir is; nothing where it is no run's.
std::optional<runfile::RunPlaces> recorded_places(const runfile::RunConfig& config) {
  const std::filesystem::path record = telemetry::RunFiles(config.log.dir).config();
  std::error_code failure;
  std::optional<runfile::RunPlaces> places;
  if (std::filesystem::is_regular_file(record, failure)) {
    comm::capture_failure([&] { places = runfile::places_of(record); });
  }
  return places;
}

/// A checkpoint.dir that is written wrongly would begin a run anew over the record of the one that
/// log.dir has: its metrics and its end would be those of two. Where nothing of that is to be gone
/// on from any more, the folder is free.
void refuse_to_abandon(const runfile::RunConfig& config, const std::filesystem::path& steps) {
  const auto recorded = recorded_places(config);
  if (!recorded) {
    return;
  }
  if (const auto step = newest_step_beside(recorded->checkpoint_dir, steps)) {
    throw UserError(
        ExitCode::config,
        format_message("log.dir = \"{}\" is the folder of a run whose checkpoints are in {} (step "
                       "{}), and checkpoint.dir = \"{}\" holds none: the run would begin anew; set "
                       "checkpoint.dir to where its checkpoints are, or choose another log.dir",
                       config.log.dir, recorded->checkpoint_dir, *step, config.checkpoint.dir));
  }
}

/// Nor may another run, whose checkpoint.dir this is, go on over it. The run's own checkpoints may
/// lie elsewhere than they did, and a copied folder has the record of the one it was copied from.
void refuse_to_go_on_as_another(const runfile::RunConfig& config,
                                const runfile::ConfigChange& log_dir) {
  const auto recorded = recorded_places(config);
  std::error_code failure;
  if (!recorded || !std::filesystem::equivalent(recorded->log_dir, config.log.dir, failure)) {
    return;
  }
  if (const auto step = newest_step_beside(recorded->checkpoint_dir, config.checkpoint.dir)) {
    throw UserError(
        ExitCode::config,
        format_message("log.dir = \"{}\" is the folder of a run whose checkpoints are in {} (step "
                       "{}), and those of checkpoint.dir = \"{}\" are of another run (log.dir: {} "
                       "-> {}), which would go on over its record; set checkpoint.dir to where its "
                       "checkpoints are, or choose another log.dir",
                       config.log.dir, recorded->checkpoint_dir, *step, config.checkpoint.dir,
                       log_dir.before, log_dir.after));
  }
}

/// Nor may a run's checkpoints be gone on from under another log.dir while its record is where it
/// was: they would have two, and the first one's newest steps would be removed.
void refuse_second_record(const runfile::RunConfig& config, const std::string& recorded_in) {
  std::error_code failure;
  const bool is_there = !recorded_in.empty() && telemetry::holds_record(recorded_in) &&
                        !std::filesystem::equivalent(recorded_in, config.log.dir, failure);
  runfile::RunConfig before;
  before.log.dir = recorded_in;
  const auto places = is_there ? recorded_places(before) : std::nullopt;
  if (places &&
      std::filesystem::equivalent(places->checkpoint_dir, config.checkpoint.dir, failure)) {
    throw UserError(
        ExitCode::config,
        format_message(
            "checkpoint.dir = \"{}\" has the checkpoints of the run whose record is in {}, and "
            "log.dir = \"{}\" would be a second one; set log.dir to {}, or move that folder",
            config.checkpoint.dir, recorded_in, config.log.dir, recorded_in));
  }
}

/// A log.dir that names the folder of another run's steps would have a new run's files lie among
/// them.
void refuse_folder_of_steps(const runfile::RunConfig& config, const std::filesystem::path& steps) {
  if (const auto step = newest_step_beside(config.log.dir, steps)) {
    throw UserError(
        ExitCode::config,
        format_message(
            "log.dir = \"{}\" is a folder of checkpoints (it holds step {}), and a new run would "
            "begin in it; set log.dir to the folder of the run, or to one of its own",
            config.log.dir, *step));
  }
}

/// A checkpoint.dir that names another run's folder would have this one's steps lie beside those of
/// that run, and every program take them for its newest.
void refuse_folder_of_run(const runfile::RunConfig& config, const std::filesystem::path& steps) {
  std::error_code failure;
  if (telemetry::holds_record(steps) &&
      !std::filesystem::equivalent(config.log.dir, steps, failure)) {
    throw UserError(
        ExitCode::config,
        format_message("checkpoint.dir = \"{}\" is the folder of another run (it has a record, and "
                       "no steps: they would be taken for that run's); name another folder",
                       config.checkpoint.dir));
  }
}

/// The newest step of the run, where it can be opened.
std::optional<io::Checkpoint> newest_of(const runfile::RunConfig& config,
                                        comm::Communicator& world) {
  try {
    std::string newest;
    comm::run_on_root(world, [&] {
      const auto folders = io::step_folders(config.checkpoint.dir);
      newest = folders.empty() ? "" : folders.back().string();
    });
    newest = comm::broadcast_text(world, newest, 0);
    return newest.empty() ? std::nullopt : std::optional(io::open_checkpoint(newest, world));
  } catch (const UserError&) {  // on all ranks alike
    return std::nullopt;
  }
}

runfile::RunConfig saved_in(const io::Checkpoint& newest) {
  return runfile::parse_saved_config(newest.scalars().text(runfile::config_text_name),
                                     newest.path().string());
}

bool begins_as_it_did(const runfile::RunConfig& config, const io::Checkpoint& newest) {
  const runfile::CheckpointConfig before = saved_in(newest).checkpoint;
  return config.checkpoint.resume == "auto" ||
         (config.checkpoint.resume == before.resume &&
          config.checkpoint.weights_only == before.weights_only);
}

/// Data that have gone since say nothing.
bool has_its_data(const runfile::RunConfig& config, const io::Checkpoint& newest,
                  comm::Communicator& self) {
  bool has = true;
  comm::capture_failure([&] {
    const data::TokenDataset dataset(
        config.data.train, dataset_options(config, data::TokenDataset::Order::sequential));
    has = !data_change(newest, data_facts(dataset, self), self);
  });
  return has;
}

}  // namespace

void refuse_wrong_folders(const runfile::RunConfig& config) {
  const std::filesystem::path steps = config.checkpoint.dir;
  if (io::list_steps(steps).empty()) {
    refuse_to_abandon(config, steps);
    refuse_folder_of_steps(config, steps);
    refuse_folder_of_run(config, steps);
  }
}

void look_before_lease(const runfile::RunConfig& config,
                       std::span<const std::string> allowed_changes, comm::Communicator& world) {
  comm::run_on_root(world, [&] { refuse_wrong_folders(config); });
  if (config.checkpoint.resume != "auto" || config.checkpoint.weights_only) {
    return;
  }
  if (const auto newest = newest_of(config, world)) {
    const std::vector<runfile::ConfigChange> changes =
        runfile::config_difference(newest->scalars().text(runfile::config_text_name), config);
    runfile::refuse_changes(changes, allowed_changes);
    const auto log_dir = std::ranges::find(changes, "log.dir", &runfile::ConfigChange::key);
    if (log_dir != changes.end()) {
      comm::run_on_root(world, [&] {
        refuse_to_go_on_as_another(config, *log_dir);
        refuse_second_record(config, saved_in(*newest).log.dir);
      });
    }
  }
}

void look_alone(const runfile::RunConfig& config, std::span<const std::string> allowed_changes) {
  comm::run_ranks(
      1, [&](comm::Communicator& self) { look_before_lease(config, allowed_changes, self); });
}

bool look_before_answer(const runfile::RunConfig& config,
                        std::span<const std::string> allowed_changes) {
  bool is_the_one = true;
  comm::run_ranks(1, [&](comm::Communicator& self) {
    look_before_lease(config, allowed_changes, self);
    if (const auto newest = newest_of(config, self)) {
      is_the_one = begins_as_it_did(config, *newest) && has_its_data(config, *newest, self);
    }
  });
  return is_the_one;
}

}  // namespace fourfold::train
