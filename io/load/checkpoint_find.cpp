// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "step/checkpoint_read.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/checkpoint_find.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>

namespace fourfold::io {

std::vector<std::int64_t> list_steps(const std::filesystem::path& directory) {
  return steps_in(directory);
}

std::vector<std::filesystem::path> step_folders(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> folders;
  for (const std::int64_t step : steps_in(directory)) {
    folders.push_back(directory / step_folder_name(step));
  }
  return folders;
}

std::int64_t newest_step(const std::filesystem::path& directory, comm::Communicator& communicator) {
  std::int64_t newest = -1;
  comm::first_rank_does(communicator, [&] {
    const std::vector<std::int64_t> steps = steps_in(directory);
    newest = steps.empty() ? -1 : steps.back();
  });
  return comm::all_reduce_scalar(communicator, newest, comm::ReduceOp::max);
}

std::optional<Checkpoint> find_newest_valid(const std::filesystem::path& directory,
                                            comm::Communicator& communicator, std::int64_t before) {
  const auto look = [&] {
    Inspection found = no_checkpoint("none");
    std::vector<std::int64_t> steps = steps_in(directory);
    std::reverse(steps.begin(), steps.end());
    for (const std::int64_t step : steps) {
      if (step >= before) {
        continue;
      }
      const std::filesystem::path folder = directory / step_folder_name(step);
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
    const bool is_named_so = step_of_folder(step_directory.filename().string()).has_value();
    throw UserError(ExitCode::config,
                    fmt::format("{}: is no checkpoint ({}){}", step_directory.string(), missing,
                                is_named_so ? "" : "; name a step-NNNNNNNNN folder"));
  }
  if (found.defect) {
    throw UserError(ExitCode::data_corrupt,
                    fmt::format("{}: the checkpoint is damaged: {}; choose another step",
                                step_directory.string(), *found.defect));
  }
  return Checkpoint(found.contents);
}

Checkpoint find_checkpoint(const std::filesystem::path& folder, comm::Communicator& communicator) {
  if (const auto newest = find_newest_valid(folder, communicator)) {
    return *newest;
  }
  if (newest_step(folder, communicator) >= 0) {
    throw UserError(ExitCode::data_corrupt,
                    fmt::format("{}: none of the steps there holds together (each is named above "
                                "with the reason); restore one from a copy",
                                folder.string()));
  }
  return open_checkpoint(folder, communicator);
}

}  // namespace fourfold::io
