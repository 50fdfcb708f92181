// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "format/checkpoint_contents.hpp"
#include "step/directory_names.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace fourfold::io {
namespace {

namespace fs = std::filesystem;

/// What is named for people to see: "step-10", "step-000000010.old"; not "steps", "step-notes".
std::optional<std::int64_t> number_after_prefix(std::string_view name) {
  std::int64_t step = 0;
  if (!name.starts_with(step_prefix)) {
    return std::nullopt;
  }
  name.remove_prefix(step_prefix.size());
  const auto [rest, failure] = std::from_chars(name.data(), name.data() + name.size(), step);
  return failure == std::errc() && step >= 0 ? std::optional(step) : std::nullopt;
}

/// Why an entry that has the name of a step is none; nothing: it is a folder, or leads to one.
Defect entry_defect(const fs::path& entry) {
  std::error_code failure;
  const fs::file_status target = fs::status(entry, failure);
  if (fs::is_directory(target)) {
    return std::nullopt;
  }
  const std::string what =
      fs::exists(target) ? fs::is_regular_file(target) ? "a file, not a folder" : "no folder" : "";
  if (const auto leads_to = link_target(entry)) {
    return what.empty() ? fmt::format("is a link to {}, which cannot be reached ({})", *leads_to,
                                      failure ? failure.message() : "nothing is there")
                        : fmt::format("is a link to {}, which is {}", *leads_to, what);
  }
  return what.empty() ? fmt::format("cannot be looked at ({})", failure.message()) : "is " + what;
}

/// A directory that is a link to nowhere is no empty one: its file system may not be mounted.
void refuse_broken_link(const fs::path& directory) {
  std::error_code failure;
  const auto leads_to = link_target(directory);
  if (leads_to && fs::status(directory, failure).type() == fs::file_type::not_found) {
    throw UserError(ExitCode::config,
                    format_message("{}: is a link to {}, which cannot be reached (its file system "
                                   "may not be mounted); mount it, or correct or remove the link",
                                   directory.string(), *leads_to));
  }
}

}  // namespace

std::optional<std::int64_t> step_of_folder(std::string_view name) noexcept {
  std::int64_t step = 0;
  if (!name.starts_with(step_prefix)) {
    return std::nullopt;
  }
  const char* end = name.data() + name.size();
  const auto [rest, failure] = std::from_chars(name.data() + step_prefix.size(), end, step);
  if (failure != std::errc() || rest != end || step < 0 || name != step_folder_name(step)) {
    return std::nullopt;
  }
  return step;
}

std::vector<std::string> names_or_none(const fs::path& directory) {
  if (auto names = names_in(directory)) {
    return std::move(*names);
  }
  refuse_broken_link(directory);
  std::error_code failure;
  const auto type = fs::status(directory, failure).type();
  if (type == fs::file_type::not_found || type == fs::file_type::regular) {
    return {};
  }
  throw UserError(ExitCode::config,
                  format_message("{}: cannot be read, so nobody can tell which checkpoints it "
                                 "holds; check its permissions and the file system",
                                 directory.string()));
}

std::vector<std::int64_t> list_steps(const fs::path& directory,
                                     std::vector<PassedOver>* passed_over) {
  std::vector<std::int64_t> steps;
  for (const std::string& name : names_or_none(directory)) {
    const auto number = number_after_prefix(name);
    if (!number) {
      continue;  // not a step's, whoever made it
    }
    const auto step = step_of_folder(name);
    const Defect defect = step ? entry_defect(directory / name)
                               : fmt::format("does not have the name of a step (that of {} is {})",
                                             *number, step_folder_name(*number));
    if (!defect) {
      steps.push_back(*step);
    } else if (passed_over != nullptr) {
      passed_over->push_back({directory / name, step, *defect});
    }
  }
  std::ranges::sort(steps);
  return steps;
}

std::vector<fs::path> step_folders(const fs::path& directory) {
  std::vector<fs::path> folders;
  for (const std::int64_t step : list_steps(directory)) {
    folders.push_back(directory / step_folder_name(step));
  }
  return folders;
}

}  // namespace fourfold::io
