// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "disk/random_word.hpp"
#include "step/checkpoint_read.hpp"
#include "step/directory_names.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/leftovers.hpp>
#include <fourfold/io/retention.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace fourfold::io {

CheckpointStore::CheckpointStore(std::filesystem::path directory, StoreOptions options)
    : directory_(std::move(directory)), options_(std::move(options)) {}

CheckpointStore::~CheckpointStore() = default;

void CheckpointStore::check_writable(comm::Communicator& communicator) const {
  comm::together(communicator, [&] {
    if (communicator.rank() == 0) {
      refuse_step(directory_);
      make_directories(directory_);
      // Never published: gone at the end. The name is no other host's.
      AtomicFile probe(directory_ / (std::string(probe_prefix) + random_word()));
      probe.write(std::vector<std::byte>(4096));
      probe.sync();
    }
  });
}

void CheckpointStore::take_lease(comm::Communicator& communicator) {
  comm::together(communicator, [&] {
    if (communicator.rank() == 0) {
      lease_ = std::make_unique<DirectoryLease>(directory_, DirectoryLease::this_process());
    }
  });
}

void CheckpointStore::check_lease() const {
  if (lease_) {
    lease_->check();
  }
}

std::vector<std::int64_t> CheckpointStore::list_steps() const {
  return steps_in(directory_);
}

std::int64_t CheckpointStore::newest_step(comm::Communicator& communicator) const {
  std::int64_t newest = -1;
  comm::together(communicator, [&] {
    if (communicator.rank() == 0) {
      const std::vector<std::int64_t> steps = list_steps();
      newest = steps.empty() ? -1 : steps.back();
    }
  });
  return comm::all_reduce_scalar(communicator, newest, comm::ReduceOp::max);
}

std::vector<std::filesystem::path> CheckpointStore::step_folders() const {
  std::vector<std::filesystem::path> folders;
  for (const std::int64_t step : list_steps()) {
    folders.push_back(directory_ / step_folder_name(step));
  }
  return folders;
}

std::optional<Checkpoint> CheckpointStore::find_newest_valid(comm::Communicator& communicator,
                                                             std::int64_t before) const {
  const auto look = [&] {
    Inspection found = no_checkpoint("none");
    std::vector<std::int64_t> steps = list_steps();
    std::reverse(steps.begin(), steps.end());
    for (const std::int64_t step : steps) {
      if (step >= before) {
        continue;
      }
      const std::filesystem::path folder = directory_ / step_folder_name(step);
      found = inspect(folder);
      if (!found.defect) {
        break;
      }
      log::warning(fmt::format("{}: the checkpoint of step {} is passed over: {}", folder.string(),
                               step, *found.defect));
    }
    return found;
  };
  const Inspection found = inspect_for_all(look, communicator);
  return found.defect ? std::nullopt : std::optional(Checkpoint(found.contents));
}

std::optional<Checkpoint> CheckpointStore::restore(
    std::span<const WantedBox> wanted, comm::Communicator& communicator,
    const std::function<void(const Checkpoint&)>& examine, std::span<const TensorLayout> layouts) {
  if (newest_step(communicator) < 0) {
    return std::nullopt;
  }
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  while (auto checkpoint = find_newest_valid(communicator, before)) {
    if (examine) {
      examine(*checkpoint);
    }
    const LoadReport report = load(*checkpoint, wanted, communicator, options_.done_with,
                                   {layouts, options_.share_reads_from});
    if (report.intact()) {
      return checkpoint;
    }
    log::warning(fmt::format(
        "{}: the checkpoint of step {} is damaged, falling back to an older "
        "one:\n  {}",
        checkpoint->path().string(), checkpoint->step(), fmt::join(report.damage, "\n  ")));
    before = checkpoint->step();
    damaged_steps_.insert(before);
  }
  throw UserError(ExitCode::data_corrupt,
                  fmt::format("{}: no checkpoint there is intact (each is named above with the "
                              "reason); restore one from a copy, or start anew in another folder",
                              directory_.string()));
}

void CheckpointStore::sweep_leftovers(comm::Communicator& communicator) const {
  comm::together(communicator, [&] {
    if (communicator.rank() == 0) {
      warn_of_leftovers(remove_leftovers(directory_));
    }
  });
}

Checkpoint open_checkpoint(const std::filesystem::path& step_directory,
                           comm::Communicator& communicator) {
  std::string missing;
  const Inspection found = inspect_for_all(
      [&] {
        std::error_code failure;
        const bool is_there = std::filesystem::exists(step_directory / manifest_name, failure);
        Inspection mine = inspect(step_directory);
        missing = mine.defect && !is_there ? *mine.defect : "";
        return mine;
      },
      communicator);
  missing = comm::broadcast_text(communicator, missing, 0);
  if (!missing.empty()) {
    throw UserError(ExitCode::config,
                    fmt::format("{}: is no checkpoint ({}); name a step-NNNNNNNNN folder",
                                step_directory.string(), missing));
  }
  if (found.defect) {
    throw UserError(ExitCode::data_corrupt,
                    fmt::format("{}: the checkpoint is damaged: {}; choose another step",
                                step_directory.string(), *found.defect));
  }
  return Checkpoint(found.contents);
}

Checkpoint find_checkpoint(const std::filesystem::path& folder, comm::Communicator& communicator) {
  const CheckpointStore store(folder);
  if (const auto newest = store.find_newest_valid(communicator)) {
    return *newest;
  }
  if (store.newest_step(communicator) >= 0) {
    throw UserError(ExitCode::data_corrupt,
                    fmt::format("{}: none of the steps there holds together (each is named above "
                                "with the reason); restore one from a copy",
                                folder.string()));
  }
  return open_checkpoint(folder, communicator);
}

}  // namespace fourfold::io
