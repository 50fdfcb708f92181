// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/build_facts.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/checkpoint_plan.hpp>
#include <fourfold/io/made_folders.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/io/streamed_save.hpp>
#include <fourfold/io/tensor_source.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/progress.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/human_text.hpp>
#include <fourfold/train/data_facts.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/saved_model.hpp>
#include <fourfold/train/state_layouts.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace fourfold::ckpt {
namespace {

using telemetry::bytes_text;

/// What the program takes beside the parts of tensors: libraries, the index, checksums, a chunk.
constexpr std::int64_t beside_parts_bytes = std::int64_t{64} << 20;

/// As this rank of those that a launcher started, or alone.
void with_ranks(const std::function<void(comm::Communicator&)>& work) {
  if (comm::launched_ranks() == 1) {
    comm::run_ranks(1, work);
    return;
  }
  const comm::MpiRuntime mpi(nullptr, nullptr);
  mpi.require_one_build(build_name());
  work(mpi.world());
}

std::vector<io::TensorId> tensors_of(const io::Checkpoint& checkpoint) {
  std::vector<io::TensorId> tensors;
  for (const io::StoredTensor& tensor : checkpoint.tensors()) {
    tensors.push_back(tensor.id);
  }
  return tensors;
}

/// Nothing may be lost on the way: the model of the run file has to have exactly these tensors.
void refuse_other_tensors(const io::Checkpoint& checkpoint,
                          const std::vector<io::TensorLayout>& layouts) {
  std::set<io::TensorId> known;
  for (const io::TensorLayout& layout : layouts) {
    const io::StoredTensor* const stored = checkpoint.find(layout.id);
    if (stored == nullptr || stored->dtype != layout.dtype || stored->shape != layout.shape) {
      throw UserError(
          ExitCode::data_corrupt,
          format_message("{}: tensor {} is not there as its run file says ({} {} is wanted)",
                         checkpoint.path().string(), layout.id.str(), name(layout.dtype),
                         layout.shape.str()));
    }
    known.insert(layout.id);
  }
  for (const io::StoredTensor& tensor : checkpoint.tensors()) {
    if (!known.contains(tensor.id)) {
      throw UserError(ExitCode::data_corrupt,
                      format_message("{}: the model of its run file has no tensor {}",
                                     checkpoint.path().string(), tensor.id.str()));
    }
  }
}

/// The mesh that a state is cut for, and how it lies there.
struct Target {
  comm::MeshShape shape;
  std::vector<io::TensorLayout> layouts;
};

/// What is wrong with the mesh was written after --to here.
Target target_of(const io::Checkpoint& checkpoint, const std::string& mesh) {
  try {
    const train::ResolvedRun run = train::resolve_target(train::saved_config(checkpoint), mesh);
    return {run.mesh, train::state_layouts(run, tensors_of(checkpoint))};
  } catch (const UserError& error) {
    throw UserError(error.code(), format_message("--to {}: {}", mesh, MadeLines{error.what()}),
                    error.where());
  }
}

io::PlanOptions plan_options(const std::string& files, std::int64_t ranks) {
  if (files == "rank") {
    return {};
  }
  return {.file_of_rank = io::shared_files(static_cast<int>(ranks), std::stoi(files))};
}

io::SavePlan save_plan(const Target& target, const io::PlanOptions& options) {
  return io::plan_save(target.layouts, static_cast<int>(target.shape.ranks()), options);
}

/// Payload files that `plan` makes.
std::size_t file_count(const io::SavePlan& plan, const io::PlanOptions& options) {
  std::set<int> files;
  for (const io::PlannedExtent& extent : plan.extents) {
    files.insert(options.file_of_rank.empty() ? extent.writer
                                              : options.file_of_rank[extent.writer]);
  }
  return files.size();
}

void print_plan(const io::Checkpoint& checkpoint, const Target& target,
                const io::PlanOptions& options, const Request& request) {
  const io::SavePlan plan = save_plan(target, options);
  if (request.json) {
    program::print_text(written_json({.path = request.to,
                                      .mesh = target.shape,
                                      .files = file_count(plan, options),
                                      .dry_run = true},
                                     checkpoint) +
                        "\n");
    return;
  }
  const auto writing =
      std::ranges::count_if(plan.bytes_of_rank, [](auto bytes) { return bytes > 0; });
  program::print("{} (mesh {}) -> {} (mesh {})\n", checkpoint.path().string(),
                 checkpoint.mesh().str(), request.to, target.shape.str());
  program::print(
      "{} of {} tensors in {} boxes; {} of {} ranks have something to write, {} at most\n",
      bytes_text(io::payload_bytes(checkpoint)), checkpoint.tensors().size(), plan.extents.size(),
      writing, target.shape.ranks(), bytes_text(*std::ranges::max_element(plan.bytes_of_rank)));
  program::print("nothing was written (--dry-run)\n");
}

void print_report(const io::Checkpoint& checkpoint, const Target& target,
                  const io::PlanOptions& options, const io::SaveReport& report, bool json) {
  if (json) {
    program::print_text(written_json({.path = report.path,
                                      .mesh = target.shape,
                                      .files = file_count(save_plan(target, options), options),
                                      .seconds = report.seconds},
                                     checkpoint) +
                        "\n");
    return;
  }
  program::print("{}: {} for mesh {}, identity {}: every bit was kept ({})\n", report.path.string(),
                 bytes_text(report.payload_bytes), target.shape.str(), checkpoint.identity(),
                 rate_text(report.payload_bytes, report.seconds));
}

/// The folder of steps that is read, or the run, step or file that names it.
void refuse_own_input(const Request& request) {
  const std::filesystem::path named = train::checkpoints_named(request.checkpoint);
  for (const std::filesystem::path& input : {std::filesystem::path(request.checkpoint), named}) {
    std::error_code failure;
    const bool is_same = std::filesystem::equivalent(input, request.to, failure);
    const bool holds_it =
        io::is_step(named) && std::filesystem::equivalent(named / "..", request.to, failure);
    if (is_same || holds_it) {
      throw UserError(ExitCode::config,
                      format_message("{}: is where {} is read from (a step is never replaced by "
                                     "another cut of it); name another folder",
                                     request.to, request.checkpoint));
    }
  }
}

/// The identity of step `step` where `checkpoint` is a step of; empty when it is not there.
/// Collective.
std::string identity_beside(const io::Checkpoint& checkpoint, std::int64_t step,
                            comm::Communicator& world) {
  if (step == checkpoint.step()) {
    return checkpoint.identity();
  }
  const std::filesystem::path folder = checkpoint.path().parent_path();
  std::string found;
  comm::run_on_root(world, [&] {
    const std::vector<std::int64_t> steps = io::list_steps(folder);
    const auto place = std::ranges::find(steps, step);
    if (place != steps.end()) {
      found = io::step_folders(folder)[place - steps.begin()].string();
    }
  });
  found = comm::broadcast_text(world, found, 0);
  return found.empty() ? "" : io::open_checkpoint(found, world).identity();
}

/// Whether two steps that no third one connects can be of one run: trained in one way on the same
/// data, from the same beginning. Of a run that went on, retention may have removed all older ones.
bool can_be_of_one_run(const io::Checkpoint& one, const io::Checkpoint& other,
                       std::span<const runfile::ConfigChange> changes) {
  const bool is_other_training = std::ranges::any_of(changes, [](const auto& change) {
    return change.key.starts_with("optim.") || change.key.starts_with("model.");
  });
  const runfile::CheckpointConfig a = train::saved_config(one).checkpoint;
  const runfile::CheckpointConfig b = train::saved_config(other).checkpoint;
  return !is_other_training && a.resume == b.resume && a.weights_only == b.weights_only &&
         train::have_same_data(one, other);
}

/// Steps of two runs in one folder would be taken for those of one, and the newest for its model.
/// Runs may have the same run file and other data or first weights: a step that both have tells.
/// Collective.
void refuse_steps_of_another_run(const Request& request, const io::Checkpoint& checkpoint,
                                 comm::Communicator& world) {
  const auto there = io::find_newest_valid(request.to, world);
  if (!there) {
    return;
  }
  const auto changes =
      runfile::config_difference(train::saved_config(checkpoint), train::saved_config(*there));
  for (const runfile::ConfigChange& change : changes) {
    if (change.rule != runfile::OnResume::free) {
      throw UserError(ExitCode::config,
                      format_message("{}: holds steps of another run ({}; step {} there would be "
                                     "taken for that run's); name another folder",
                                     request.to, change.str(), checkpoint.step()));
    }
  }
  const std::string ours = identity_beside(checkpoint, there->step(), world);
  if (ours.empty() && can_be_of_one_run(checkpoint, *there, changes)) {
    return;
  }
  if (ours != there->identity()) {
    throw UserError(
        ExitCode::config,
        format_message("{}: holds step {} ({}), and step {} would be taken for the same run's; "
                       "name another folder",
                       request.to, there->step(),
                       ours.empty() ? format_message("there is none in {} to compare it with",
                                                     checkpoint.path().parent_path().string())
                                    : "with other numbers than that of " + request.checkpoint,
                       checkpoint.step()));
  }
}

}  // namespace

ExitCode reshard(const Request& request) {
  with_ranks([&](comm::Communicator& world) {
    comm::run_on_root(world, [&] {
      refuse_own_input(request);
      refuse_directory_of_run(request.to);
    });
    const bool is_shown = world.rank() == 0 && !request.dry_run;
    program::Progress progress(is_shown ? request.progress : ProgressMode::none, "resharded");
    const io::Checkpoint checkpoint = train::open_named_checkpoint(request.checkpoint, world);
    const Target target = target_of(checkpoint, request.mesh);
    refuse_other_tensors(checkpoint, target.layouts);
    refuse_steps_of_another_run(request, checkpoint, world);
    const io::PlanOptions plan = plan_options(request.files, target.shape.ranks());
    if (request.dry_run) {
      comm::collective_try(world, [&] { io::refuse_step_as_directory(request.to); });
      if (world.rank() == 0) {
        print_plan(checkpoint, target, plan, request);
      }
      return;
    }
    io::CheckpointSource source(checkpoint);
    std::optional<io::MadeFolders> folder;  // goes again where nothing comes of it
    comm::run_on_root(world, [&] { folder.emplace(request.to); });
    const io::SaveReport report = io::save_streamed(
        request.to,
        {.step = checkpoint.step(),
         .mesh = target.shape,
         .scalars = checkpoint.scalars(),
         .tensors = target.layouts,
         .plan = plan,
         .identity = checkpoint.identity(),
         .part_bytes = std::max<std::int64_t>(1, request.memory_bytes - beside_parts_bytes),
         .progress = [&](std::int64_t done_bytes,
                         std::int64_t total_bytes) { progress.show(done_bytes, total_bytes); }},
        source, world);
    if (folder) {
      folder->keep();
    }
    progress.finish();
    if (world.rank() == 0) {
      print_report(checkpoint, target, plan, report, request.json);
    }
  });
  return ExitCode::finished;
}

}  // namespace fourfold::ckpt
