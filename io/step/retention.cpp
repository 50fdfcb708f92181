// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "disk/random_word.hpp"
#include "format/checkpoint_contents.hpp"
#include "step/checkpoint_read.hpp"
#include "step/directory_names.hpp"
#include "step/step_folder.hpp"
#include "step/step_listing.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/retention.hpp>
#include <fourfold/io/temporary_name.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <set>
#include <system_error>
#include <utility>

namespace fourfold::io {
namespace {

std::optional<double> validation_loss(const std::filesystem::path& folder) {
  const Inspection found = inspect(folder);
  if (found.defect) {
    return std::nullopt;
  }
  const auto& texts = found.contents->index.scalars.texts;
  const auto noted = texts.find(validation_loss_name);
  if (noted == texts.end()) {
    return std::nullopt;
  }
  double loss = 0;
  const std::string& text = noted->second;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), loss);
  const bool is_number = failure == std::errc() && rest == text.data() + text.size();
  return is_number && std::isfinite(loss) ? std::optional(loss) : std::nullopt;
}

/// What somebody has put into a folder that has the name of a step.
std::optional<std::string> name_that_no_step_has(const std::filesystem::path& folder) {
  const auto names = names_in(folder);
  if (!names) {
    return std::nullopt;
  }
  const auto found = std::ranges::find_if(*names, [](const std::string& name) {
    return name != manifest_name && name != index_name && !payload_number(name) &&
           !name_of_temporary(name) && !is_left_by_file_system(name);
  });
  return found == names->end() ? std::nullopt : std::optional(*found);
}

}  // namespace

std::vector<std::int64_t> steps_to_remove(std::span<const KnownStep> steps,
                                          const Retention& retention) {
  const auto count = static_cast<std::size_t>(std::max(retention.keep_last, 0));
  if (count == 0 || steps.size() <= count) {
    return {};
  }
  std::set<std::int64_t> kept;
  std::vector<KnownStep> rated;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool is_multiple =
        retention.keep_every_steps > 0 && steps[i].step % retention.keep_every_steps == 0;
    if (i + count >= steps.size() || is_multiple) {
      kept.insert(steps[i].step);
    }
    if (steps[i].validation_loss) {
      rated.push_back(steps[i]);
    }
  }
  std::ranges::sort(rated, [](const KnownStep& a, const KnownStep& b) {
    return *a.validation_loss != *b.validation_loss ? *a.validation_loss < *b.validation_loss
                                                    : a.step > b.step;
  });
  rated.resize(std::min(rated.size(), static_cast<std::size_t>(std::max(retention.keep_best, 0))));
  for (const KnownStep& best : rated) {
    kept.insert(best.step);
  }
  std::vector<std::int64_t> removed;
  for (const KnownStep& known : steps) {
    if (!kept.contains(known.step)) {
      removed.push_back(known.step);
    }
  }
  return removed;
}

std::vector<KnownStep> known_steps(const std::filesystem::path& directory, std::int64_t newest,
                                   bool with_losses) {
  std::vector<KnownStep> known;
  for (const std::int64_t step : steps_in(directory)) {
    if (step <= newest) {
      known.push_back(
          {step, with_losses ? validation_loss(directory / step_folder_name(step)) : std::nullopt});
    }
  }
  return known;
}

std::vector<std::string> remove_steps(const std::filesystem::path& directory,
                                      std::span<const std::int64_t> steps,
                                      const std::function<void()>& ask) {
  std::vector<std::string> problems;
  for (const std::int64_t step : steps) {
    const std::filesystem::path folder = directory / step_folder_name(step);
    const auto leads_to = link_target(folder);
    if (const auto foreign = leads_to ? std::nullopt : name_that_no_step_has(folder)) {
      problems.push_back(format_message(
          "{}: is not removed, since it holds {}, which no checkpoint has; move that away",
          folder.string(), *foreign));
      continue;
    }
    const std::filesystem::path trash =
        work_folder_in(directory) / fmt::format("{}{}", trash_prefix, random_word());
    if (ask) {
      ask();
    }
    if (::rename(folder.c_str(), trash.c_str()) != 0) {
      const int error_number = errno;
      if (ask) {
        ask();
      }
      problems.push_back(format_message("{}: rename: {}", folder.string(),
                                        std::system_category().message(error_number)));
      continue;
    }
    if (leads_to) {
      log::local(log::Level::info,
                 format_message("{}: the link is removed; what it led to, {}, is kept",
                                folder.string(), *leads_to));
    }
    sync_directory(directory);
    if (Defect defect = remove_tree(trash)) {
      problems.push_back(std::move(*defect));
    }
  }
  return problems;
}

}  // namespace fourfold::io
