// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "resume.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/checkpoint_load.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/telemetry/status_file.hpp>
#include <fourfold/train/first_look.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/saved_model.hpp>
#include <fourfold/train/training_state.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

namespace fourfold::train {
namespace {

constexpr const char* data_key = "data.train";

/// Files that grew, shrank, came or went: the permutation of samples is another one then. Or that
/// have been replaced.
void refuse_other_data(const ResumeRequest& request, const io::Checkpoint& checkpoint,
                       comm::Communicator& world) {
  const auto change = data_change(checkpoint, request.data, world);
  if (!change) {
    return;
  }
  if (std::ranges::count(request.allowed_changes, data_key) > 0) {
    log::info(format_message("changed since the checkpoint: {}", *change));
    return;
  }
  throw UserError(
      ExitCode::config,
      format_message("the training data are not those of {} ({}: samples would be repeated or left "
                     "out); put the files back, or accept them as they are with --allow-change={}",
                     checkpoint.path().string(), *change, data_key));
}

/// A run that is made longer or shorter: what becomes of its learning rate.
void tell_rates(const runfile::RunConfig& config, const io::Checkpoint& checkpoint) {
  const runfile::RunConfig before = saved_config(checkpoint);
  const std::int64_t made = checkpoint.step();
  const std::int64_t steps = config.train.steps;
  if (made < 1 || made >= steps) {
    return;
  }
  const runfile::LearningRateSchedule& schedule = config.optim.schedule;
  if (before.train.steps != steps || before.optim.schedule != schedule) {
    log::info(runfile::rate_eta(before.optim.schedule, schedule, made, steps));
  }
  if (runfile::ends_at_rate_zero(schedule, made, steps)) {
    log::warning(
        format_message("the learning rate of all updates from {} to {} is 0: they change no "
                       "weights; set optim.decay_steps = {} or optim.min_lr, and allow it with "
                       "--allow-change=optim.decay_steps or --allow-change=optim.min_lr",
                       made + 1, steps, steps));
  }
}

void examine(const ResumeRequest& request, const io::Checkpoint& checkpoint,
             comm::Communicator& world) {
  const auto changes =
      runfile::config_difference(checkpoint.scalars().text(config_text_name), request.config);
  runfile::refuse_changes(changes, request.allowed_changes);  // first: it names what it refuses
  for (const runfile::ConfigChange& change : changes) {
    log::info(format_message("changed since the checkpoint: {}", change.str()));
  }
  refuse_other_data(request, checkpoint, world);
  tell_rates(request.config, checkpoint);
}

/// A new run takes the weights alone, which mean nothing in another model.
void examine_weights(const ResumeRequest& request, const io::Checkpoint& checkpoint) {
  const auto changes =
      runfile::refuse_other_model(saved_config(checkpoint).model.resolved(), request.config.model,
                                  request.allowed_changes, checkpoint.path().string());
  for (const runfile::ConfigChange& change : changes) {
    log::info(format_message("the model differs from the checkpoint's: {}", change.str()));
  }
  refuse_foreign_data(checkpoint, request.data, request.config.data.allow_mixed_tokenizers);
}

std::optional<io::Checkpoint> restore(const ResumeRequest& request, comm::Communicator& world) {
  return request.store.restore(
      request.wanted, world, [&](const io::Checkpoint& found) { examine(request, found, world); },
      request.layouts);
}

/// Before a node-local step becomes a checkpoint: a start that is refused leaves everything as it
/// is.
void examine_node_local(const ResumeRequest& request, comm::Communicator& world) {
  if (const auto found = request.local_tier->find_newest(world, -1)) {
    runfile::refuse_changes(
        runfile::config_difference(found->scalars().text(config_text_name), request.config),
        request.allowed_changes);
    refuse_other_data(request, *found, world);
    if (request.look) {
      request.look(*found);
    }
    // An earlier start that stood still changes neither the node-local steps nor what becomes of
    // them.
    comm::run_on_root(world, [&] { request.store.confirm_lease(); });
    request.store.sweep_leftovers(world);  // what it becomes needs room
  }
}

/// With the node-local tier. A checkpoint can be damaged where only loading it shows; then a
/// node-local step after it may still be newer than the one before it.
std::optional<io::Checkpoint> restore_with_local_tier(const ResumeRequest& request,
                                                      comm::Communicator& world) {
  examine_node_local(request, world);
  request.local_tier->promote_newest(world);
  std::optional<io::Checkpoint> checkpoint;
  try {
    checkpoint = restore(request, world);
    if (!checkpoint || checkpoint->step() == io::newest_step(request.store.directory(), world)) {
      return checkpoint;
    }
  } catch (const UserError& error) {
    if (error.code() != ExitCode::data_corrupt || !request.local_tier->promote_newest(world, -1)) {
      throw;
    }
    return restore(request, world);
  }
  return request.local_tier->promote_newest(world, checkpoint->step()) ? restore(request, world)
                                                                       : checkpoint;
}

std::optional<Resumed> resume_newest(const ResumeRequest& request, comm::Communicator& world) {
  const auto checkpoint = request.local_tier != nullptr ? restore_with_local_tier(request, world)
                                                        : restore(request, world);
  return checkpoint ? std::optional(Resumed{*checkpoint}) : std::nullopt;
}

/// The folder that a path names, however it is written; it need not be there.
std::filesystem::path folder_named(const std::string& path) {
  std::error_code failure;
  const std::filesystem::path whole = whole_path(path);
  const auto folder = std::filesystem::weakly_canonical(whole, failure);
  return failure ? whole : folder;
}

/// Whether a checkpoint comes from a run that began at `origin`.
bool went_on_from(const std::string& origin, const std::optional<io::Checkpoint>& checkpoint) {
  if (!checkpoint) {
    return false;
  }
  const std::string began_at = saved_config(*checkpoint).checkpoint.resume;
  return began_at == origin || (began_at != "auto" && began_at != "never" &&
                                folder_named(began_at) == folder_named(origin));
}

/// A run that began at `origin` may have been killed before its first checkpoint after step
/// `after`: its node-local steps are its own, while those of a run before it are left behind.
void promote_own(const std::string& origin, std::int64_t after, const ResumeRequest& request,
                 comm::Communicator& world) {
  if (request.local_tier != nullptr && io::newest_step(request.store.directory(), world) <= after &&
      went_on_from(origin, request.local_tier->find_newest(world, after))) {
    comm::run_on_root(world, [&] { request.store.confirm_lease(); });
    request.local_tier->promote_newest(world, after);
  }
}

/// Masters, of which every run has some. @param all  boxes or layouts
template <class Tensor>
std::vector<Tensor> weights_of(std::span<const Tensor> all) {
  std::vector<Tensor> weights;
  std::ranges::copy_if(all, std::back_inserter(weights), [](const Tensor& tensor) {
    return tensor.id.state == io::TensorState::master;
  });
  return weights;
}

/// Where checkpoint.dir follows log.dir, that is the one to change: metrics of two runs in one
/// folder would be mixed.
const char* key_of_folder(const runfile::RunConfig& config) {
  return std::filesystem::path(config.checkpoint.dir) ==
                 std::filesystem::path(config.log.dir) / runfile::checkpoints_in_log_dir
             ? "log.dir"
             : "checkpoint.dir";
}

[[noreturn]] void refuse_later_steps(const ResumeRequest& request, const io::Checkpoint& origin,
                                     std::int64_t newest) {
  throw UserError(
      ExitCode::config,
      format_message(
          "checkpoint.resume = {} is step {}, but {} already holds step {} (steps are never "
          "overwritten, so this run could not save); name another {}, or remove the later steps",
          request.config.checkpoint.resume, origin.step(), request.store.directory().string(),
          newest, key_of_folder(request.config)));
}

/// A run clears its node-local steps when it begins: it cannot go on from one in place.
void refuse_local_step(const runfile::CheckpointConfig& config) {
  if (!config.node_local_dir.empty() && io::lies_in(config.resume, config.node_local_dir)) {
    throw UserError(
        ExitCode::config,
        format_message(
            "checkpoint.resume = {} lies in checkpoint.node_local_dir, which a run clears when it "
            "begins; \"auto\" goes on from the node-local steps of the run itself, and of another "
            "one's, if it is whole, make a copy elsewhere and name that",
            config.resume));
  }
}

/// Checkpoints that were moved away, or whose file system is not mounted, would have the run begin
/// anew over its own record.
void refuse_without_saved_steps(const runfile::RunConfig& config) {
  const telemetry::RunFiles record(config.log.dir);
  const auto saved = telemetry::checkpoint_step_of(record.status());
  if (saved && *saved > 0) {
    throw UserError(
        ExitCode::config,
        format_message(
            "log.dir = \"{}\" has the record of a run that has saved step {}, and checkpoint.dir = "
            "\"{}\" holds no step: the run would begin anew over it; bring its checkpoints back, "
            "choose another log.dir, or say --resume=never to begin anew there",
            config.log.dir, *saved, config.checkpoint.dir));
  }
}

/// The step that a run begins at; nothing when it cannot be opened and the run has steps of its own
/// by now. What a chain of jobs began with may have been removed since, by its own retention or by
/// a purge that leaves the folder. @throws as open_named_checkpoint, on all ranks alike
std::optional<io::Checkpoint> open_origin(const ResumeRequest& request, comm::Communicator& world) {
  const std::string& path = request.config.checkpoint.resume;
  try {
    return open_named_checkpoint(path, world);
  } catch (const UserError& error) {
    promote_own(path, -1, request, world);
    if (!went_on_from(path, io::find_newest_valid(request.store.directory(), world))) {
      throw;
    }
    log::info(
        format_message("{} holds steps of a run that began at {}, which cannot be opened any more "
                       "({}): going on from the newest",
                       request.store.directory().string(), path, MadeLines{error.what()}));
    return std::nullopt;
  }
}

/// Whether a path names the run's own folder of steps, or the run.
bool is_own(const std::string& path, const ResumeRequest& request, comm::Communicator& world) {
  std::int64_t own = 0;
  if (world.rank() == 0) {
    comm::capture_failure([&] {  // what cannot be opened is said where it is
      std::error_code failure;
      own = std::filesystem::equivalent(checkpoints_named(path), request.store.directory(), failure)
                ? 1
                : 0;
    });
  }
  return comm::all_reduce_scalar(world, own, comm::ReduceOp::max) != 0;
}

std::optional<Resumed> resume_path(const ResumeRequest& request, comm::Communicator& world) {
  const std::string& path = request.config.checkpoint.resume;
  const bool weights_only = request.config.checkpoint.weights_only;
  comm::run_on_root(world, [&] { refuse_local_step(request.config.checkpoint); });
  if (!weights_only && is_own(path, request, world)) {
    return resume_newest(request, world);
  }
  const auto origin = open_origin(request, world);
  if (!origin) {
    return resume_newest(request, world);
  }
  const io::Checkpoint& checkpoint = *origin;
  const std::int64_t begins_at = weights_only ? -1 : checkpoint.step();
  promote_own(path, begins_at, request, world);
  const std::int64_t newest = io::newest_step(request.store.directory(), world);
  // A folder of steps may have got newer ones since the run began at one of them.
  const bool began_elsewhere = folder_named(path) != folder_named(checkpoint.path().string());
  if (newest > begins_at || (began_elsewhere && newest >= 0)) {
    if (went_on_from(path, io::find_newest_valid(request.store.directory(), world))) {
      log::info(format_message("{} holds step {} of a run that began at {}: going on from there",
                               request.store.directory().string(), newest, path));
      return resume_newest(request, world);
    }
    if (newest > begins_at) {
      refuse_later_steps(request, checkpoint, newest);
    }
  }
  io::require_no_lost_steps(request.store.directory(), begins_at, world);
  if (weights_only) {
    examine_weights(request, checkpoint);
  } else {
    examine(request, checkpoint, world);
  }
  const auto load = [&](std::span<const io::WantedBox> wanted,
                        std::span<const io::TensorLayout> layouts) {
    return io::load(checkpoint, wanted, world, request.store.done_with(),
                    {layouts, request.store.options().share_reads_from});
  };
  const io::LoadReport report = weights_only
                                    ? load(weights_of(request.wanted), weights_of(request.layouts))
                                    : load(request.wanted, request.layouts);
  if (!report.intact()) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("{} is damaged ({}); resume from another step",
                                   checkpoint.path().string(), report.damage.front()));
  }
  return Resumed{checkpoint, weights_only};
}

/// Kinds of state that only one of checkpoint and run has: "error_feedback".
std::string kinds_missing(const std::set<io::TensorState>& here,
                          const std::set<io::TensorState>& there) {
  std::vector<std::string_view> kinds;
  for (const io::TensorState& state : there) {
    if (here.count(state) == 0) {
      kinds.push_back(state.name());
    }
  }
  return fmt::format("{}", fmt::join(kinds, ", "));
}

}  // namespace

std::optional<Resumed> resume(const ResumeRequest& request, comm::Communicator& world) {
  const std::string& mode = request.config.checkpoint.resume;
  if (request.config.checkpoint.weights_only && (mode == "auto" || mode == "never")) {
    throw UserError(
        ExitCode::config,
        format_message("checkpoint.weights_only = true does not go with checkpoint.resume = \"{}\" "
                       "(whose weights?); name a step directory there, or leave it out",
                       mode));
  }
  // Once more: what look_before_lease() saw may have changed until the lease was there.
  comm::run_on_root(world, [&] { refuse_wrong_folders(request.config); });
  if (mode == "auto") {
    auto resumed = resume_newest(request, world);
    if (!resumed) {
      comm::run_on_root(world, [&] { refuse_without_saved_steps(request.config); });
    }
    return resumed;
  }
  if (mode != "never") {
    return resume_path(request, world);
  }
  io::require_no_lost_steps(request.store.directory(), -1, world);
  if (io::newest_step(request.store.directory(), world) >= 0) {
    throw UserError(
        ExitCode::config,
        format_message("checkpoint.resume is \"never\" but {} holds checkpoints (their steps are "
                       "never overwritten); name another {} or remove them",
                       request.store.directory().string(), key_of_folder(request.config)));
  }
  return std::nullopt;
}

void tell_other_state(const io::Checkpoint& checkpoint, std::span<const io::TensorLayout> layouts) {
  std::set<io::TensorState> saved;
  std::set<io::TensorState> wanted;
  for (const io::StoredTensor& tensor : checkpoint.tensors()) {
    saved.insert(tensor.id.state);
  }
  for (const io::TensorLayout& layout : layouts) {
    wanted.insert(layout.id.state);
  }
  if (const std::string kinds = kinds_missing(saved, wanted); !kinds.empty()) {
    log::info(format_message("{} is not in the checkpoint and begins at zero", kinds));
  }
  if (const std::string kinds = kinds_missing(wanted, saved); !kinds.empty()) {
    log::info(
        format_message("{} of the checkpoint is of no use to this run and left behind", kinds));
  }
}

}  // namespace fourfold::train
