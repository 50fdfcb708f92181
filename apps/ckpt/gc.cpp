// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/leftovers.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <vector>

namespace fourfold::ckpt {
namespace {

/// The newest step that holds together; newer ones are warned of.
std::optional<std::int64_t> newest_valid(const std::string& directory) {
  std::optional<std::int64_t> newest;
  comm::run_ranks(1, [&](comm::Communicator& self) {
    if (const auto found = io::find_newest_valid(directory, self)) {
      newest = found->step();
    }
  });
  return newest;
}

/// What retention lets go, but for the newest step that a run could go on from.
void choose_steps(const GcRequest& request, Removed& removed) {
  const std::vector<io::KnownStep> known = io::known_steps(
      request.directory, std::numeric_limits<std::int64_t>::max(), request.keep.keep_best > 0);
  removed.steps = io::steps_to_remove(known, request.keep);
  if (removed.steps.empty()) {
    return;
  }
  if (const auto newest = newest_valid(request.directory)) {
    if (std::erase(removed.steps, *newest) > 0) {
      removed.spared = newest;
    }
    return;
  }
  throw UserError(ExitCode::data_corrupt,
                  fmt::format("{}: no step there holds together (each is named above with the "
                              "reason), so none is removed; restore one from a copy first",
                              request.directory));
}

void refuse_failures(const std::vector<std::string>& problems) {
  if (!problems.empty()) {
    throw UserError(ExitCode::cannot_write,
                    fmt::format("not everything could be removed: {}", problems.front()));
  }
}

void print(const Removed& removed) {
  const char* const verb = removed.dry_run ? "would remove" : "removes";
  if (removed.spared) {
    fmt::print("step {} stays: it is the newest one that holds together\n", *removed.spared);
  }
  for (const std::int64_t step : removed.steps) {
    fmt::print("{} step {}\n", verb, step);
  }
  for (const std::string& name : removed.leftovers) {
    fmt::print("{} {}\n", verb, name);
  }
  if (removed.steps.empty() && removed.leftovers.empty()) {
    fmt::print("{}: there is nothing to remove\n", removed.directory.string());
  }
}

}  // namespace

ExitCode gc(const GcRequest& request) {
  if (!std::filesystem::is_directory(request.directory)) {
    throw UserError(ExitCode::config,
                    fmt::format("{}: is no folder of steps; check its name", request.directory));
  }
  std::optional<io::DirectoryLease> lease;  // so that no run saves here meanwhile
  if (!request.dry_run) {
    lease.emplace(request.directory, io::DirectoryLease::this_process());
  }
  Removed removed{.directory = request.directory,
                  .steps = {},
                  .leftovers = io::leftovers_in(request.directory, request.set_aside),
                  .spared = {},
                  .dry_run = request.dry_run};
  choose_steps(request, removed);
  if (!request.json) {
    print(removed);
  }
  if (!request.dry_run) {
    for (const std::int64_t step : removed.steps) {
      lease->check();
      refuse_failures(io::remove_steps(request.directory, std::span(&step, 1)));
    }
    lease->check();
    refuse_failures(io::remove_leftovers(request.directory, request.set_aside));
  }
  if (request.json) {
    fmt::print("{}\n", removed_json(removed));
  }
  return ExitCode::finished;
}

}  // namespace fourfold::ckpt
