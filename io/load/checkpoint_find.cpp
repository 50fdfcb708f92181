// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "format/checkpoint_contents.hpp"
#include "step/checkpoint_read.hpp"
#include "step/directory_names.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/checkpoint_find.hpp>

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

namespace fourfold::io {

namespace {

/// Of which step LATEST says that it was saved last; it is a hint.
std::optional<std::int64_t> step_of_latest(const std::filesystem::path& directory) {
  constexpr std::uint64_t most_bytes = 4096;
  std::string text;
  std::int64_t step = 0;
  if (read_file(directory / latest_name, most_bytes, text)) {
    return std::nullopt;
  }
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), step);
  return failure == std::errc() && rest != text.data() + text.size() && *rest == ' '
             ? std::optional(step)
             : std::nullopt;
}

/// @param after  the step that is used instead; -1: none
void warn_of_lost_latest(const std::filesystem::path& directory, std::int64_t after) {
  const auto latest = step_of_latest(directory);
  // A start that begins anew has not looked for what is there.
  if (latest && *latest > after &&
      kind_of(directory / step_folder_name(*latest)) == EntryKind::missing) {
    log::warning(format_message(
        "{}: step {} was the last one that was saved there, and it is not there any more: {}",
        (directory / latest_name).string(), *latest,
        after < 0 ? std::string("this run begins anew")
                  : format_message("step {} is used instead", after)));
  }
}

}  // namespace

std::optional<std::string> link_of_step(const std::filesystem::path& directory, std::int64_t step) {
  return link_target(directory / step_folder_name(step));
}

std::vector<PassedOver> passed_over_in(const std::filesystem::path& directory) {
  std::vector<PassedOver> entries;
  list_steps(directory, &entries);
  return entries;
}

void warn_of_passed_over(std::span<const PassedOver> entries) {
  for (const PassedOver& entry : entries) {
    log::warning(format_message("{}: is passed over: it {}", entry.path.string(), entry.why));
  }
}

void require_no_lost_steps(const std::filesystem::path& directory, std::int64_t after,
                           comm::Communicator& communicator) {
  comm::run_on_root(communicator, [&] {
    const std::vector<PassedOver> passed_over = passed_over_in(directory);
    warn_of_passed_over(passed_over);
    for (const PassedOver& entry : passed_over) {
      if (entry.step && *entry.step > after) {
        throw UserError(
            ExitCode::data_corrupt,
            format_message("{}: has the name of a step and {}; without it this run would begin {}, "
                           "so bring the step back, or move the entry away",
                           entry.path.string(), entry.why,
                           after < 0 ? "anew" : format_message("again at step {}", after)));
      }
    }
    warn_of_lost_latest(directory, after);
  });
}

std::int64_t newest_step(const std::filesystem::path& directory, comm::Communicator& communicator) {
  std::int64_t newest = -1;
  comm::run_on_root(communicator, [&] {
    const std::vector<std::int64_t> steps = list_steps(directory);
    newest = steps.empty() ? -1 : steps.back();
  });
  return comm::all_reduce_scalar(communicator, newest, comm::ReduceOp::max);
}

std::optional<Checkpoint> find_newest_valid(const std::filesystem::path& directory,
                                            comm::Communicator& communicator, std::int64_t before) {
  const auto look = [&] {
    Inspection found = no_checkpoint("none");
    std::vector<PassedOver> passed_over;
    std::vector<std::int64_t> steps = list_steps(directory, &passed_over);
    if (before == std::numeric_limits<std::int64_t>::max()) {
      warn_of_passed_over(passed_over);
      if (!steps.empty()) {
        warn_of_lost_latest(directory, steps.back());
      }
    }
    std::ranges::reverse(steps);
    for (const std::int64_t step : steps) {
      if (step >= before) {
        continue;
      }
      const std::filesystem::path folder = directory / step_folder_name(step);
      found = inspect(folder);
      if (!found.defect) {
        break;
      }
      log::warning(format_message("{}: the checkpoint of step {} is passed over: {}",
                                  folder.string(), step, *found.defect));
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
    throw UserError(
        ExitCode::config,
        format_message(
            "{}: is no checkpoint ({}){}", step_directory.string(), missing,
            is_named_so ? "" : "; name a step, a folder of steps, or a run's folder or run file"));
  }
  if (found.defect) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("{}: the checkpoint is damaged: {}; choose another step",
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
                    format_message("{}: none of the steps there holds together (each is named "
                                   "above with the reason); restore one from a copy",
                                   folder.string()));
  }
  return open_checkpoint(folder, communicator);
}

}  // namespace fourfold::io
