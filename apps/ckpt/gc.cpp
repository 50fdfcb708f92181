// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/progress.hpp>
#include <fourfold/train/load_run.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <vector>

namespace fourfold::ckpt {
namespace {

/// The newest step that is whole, which only reading all of it tells; newer ones are warned of.
std::optional<std::int64_t> newest_intact(const Request& request) {
  program::Progress progress(request.progress, "read");
  std::vector<std::filesystem::path> folders = io::step_folders(request.checkpoint);
  std::ranges::reverse(folders);
  for (const std::filesystem::path& folder : folders) {
    const Verified found = verify_listed_step(folder, true, progress);
    progress.finish();
    if (found.damage.empty() && !found.is_gone) {
      return found.step;
    }
    if (!found.is_gone) {
      log::warning(format_message("{}: DAMAGED: {}", folder.string(), found.damage.front()));
    }
  }
  return std::nullopt;
}

/// What retention lets go, but for the newest step that a run could go on from.
void choose_steps(const Request& request, Removed& removed) {
  io::warn_of_passed_over(removed.passed_over);
  const std::vector<io::KnownStep> known = io::known_steps(
      request.checkpoint, std::numeric_limits<std::int64_t>::max(), request.keep.keep_best > 0);
  removed.steps = io::steps_to_remove(known, request.keep);
  if (removed.steps.empty()) {
    return;
  }
  removed.intact = newest_intact(request);
  if (!removed.intact) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("{}: no step there is intact (each is named above with the "
                                   "reason), so none is removed; restore one from a copy first",
                                   request.checkpoint));
  }
  removed.is_spared = std::erase(removed.steps, *removed.intact) > 0;
}

/// Steps in which somebody has put something stay, and the others go.
void spare_foreign(Removed& removed) {
  std::erase_if(removed.steps, [&](std::int64_t step) {
    auto kept = io::why_not_removed(removed.directory, step);
    if (kept) {
      log::warning(format_message("{}: {}", kept->path.string(), kept->why));
      removed.passed_over.push_back(*kept);
    }
    return kept.has_value();
  });
}

/// The lease of the directory, so that no run saves there meanwhile. On a full disk there is no
/// room for it, nor for anybody else's: then it is taken as soon as what was removed made room.
class Hold {
 public:
  explicit Hold(const std::string& directory) : directory_(directory) {
    if (const std::string lack = take(); !lack.empty()) {
      log::warning(
          format_message("{}: no lease can be taken ({}), and nobody has one: going on without",
                         directory_, lack));
    }
  }
  /// Ask before something is removed. @throws UserError when another has the directory
  void check() {
    if (lease_) {
      lease_->check();
    } else {
      take();
    }
  }

 private:
  /// @return why it has none
  std::string take() {
    const io::LeaseHolder me = io::LeaseHolder::this_process();
    try {
      lease_.emplace(directory_, me, io::LeaseOptions{.gone_at_signal = true});
    } catch (const io::NoRoom& full) {
      if (const auto holder = io::living_holder_of(directory_, me, io::LeaseOptions{}.name)) {
        throw UserError(ExitCode::config,
                        format_message("{}: {} may be running here, and the disk is too full to "
                                       "find out; end it, or remove its .lease if it is dead",
                                       directory_, holder->str()));
      }
      return full.what();
    }
    return "";
  }

  std::string directory_;
  std::optional<io::DirectoryLease> lease_;
};

void refuse_failures(const std::vector<std::string>& problems, Hold& hold) {
  if (!problems.empty()) {
    hold.check();  // where another has taken over, that is the reason
    throw UserError(ExitCode::cannot_write,
                    format_message("not everything could be removed: {}", problems.front()));
  }
}

void print(const Removed& removed) {
  const char* const verb = removed.dry_run ? "would remove" : "removes";
  if (removed.intact) {
    program::print("step {} {}: it is the newest one that is intact (all of it was read)\n",
                   *removed.intact, removed.is_spared ? "stays" : "is kept");
  }
  for (const std::int64_t step : removed.steps) {
    const auto target = io::link_of_step(removed.directory, step);
    program::print("{} step {}{}\n", verb, step,
                   target ? fmt::format(" (a link; what it leads to, {}, is kept)", *target) : "");
  }
  for (const std::string& name : removed.leftovers) {
    program::print("{} {}\n", verb, name);
  }
  if (removed.steps.empty() && removed.leftovers.empty()) {
    program::print("{}: there is nothing to remove\n", removed.directory.string());
  }
}

}  // namespace

ExitCode gc(const Request& named) {
  Request request = named;
  // What removes asks for the same run, as far as a restart would.
  request.checkpoint = train::checkpoints_named(named.checkpoint, runfile::OnResume::free).string();
  if (!std::filesystem::is_directory(request.checkpoint)) {
    throw UserError(ExitCode::config, format_message("{}: is no folder of steps; check its name",
                                                     request.checkpoint));
  }
  io::refuse_step_as_directory(request.checkpoint);
  std::optional<Hold> hold;
  if (!request.dry_run) {
    hold.emplace(request.checkpoint);
  }
  Removed removed{.directory = request.checkpoint,
                  .steps = {},
                  .passed_over = io::passed_over_in(request.checkpoint),
                  .leftovers = io::leftovers_in(request.checkpoint, request.set_aside),
                  .intact = {},
                  .dry_run = request.dry_run};
  choose_steps(request, removed);
  spare_foreign(removed);
  if (!request.json) {
    print(removed);
  }
  if (!request.dry_run) {
    for (const std::int64_t step : removed.steps) {
      refuse_failures(
          io::remove_steps(request.checkpoint, std::span(&step, 1), [&] { hold->check(); }), *hold);
    }
    hold->check();
    refuse_failures(io::remove_leftovers(request.checkpoint, request.set_aside), *hold);
  }
  if (request.json) {
    program::print_text(removed_json(removed) + "\n");
  }
  return ExitCode::finished;
}

}  // namespace fourfold::ckpt
