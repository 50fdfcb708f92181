// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "disk/temporary.hpp"
#include "format/checkpoint_contents.hpp"
#include "step/checkpoint_read.hpp"
#include "step/directory_names.hpp"
#include "step/step_folder.hpp"

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
#include <limits>
#include <ranges>
#include <set>
#include <system_error>
#include <utility>

namespace fourfold::io {
namespace {

std::optional<double> number_in(const std::string& text) {
  double number = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = failure == std::errc() && rest == text.data() + text.size();
  return is_number && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

/// What a step notes of its evaluation.
KnownStep with_loss(const std::filesystem::path& directory, std::int64_t step) {
  KnownStep known{.step = step};
  const Inspection found = inspect(directory / step_folder_name(step));
  if (found.defect) {
    return known;
  }
  const auto& texts = found.contents->index.scalars.texts;
  if (const auto loss = texts.find(validation_loss_name); loss != texts.end()) {
    known.validation_loss = number_in(loss->second);
  }
  if (const auto data = texts.find(validation_data_name); data != texts.end()) {
    known.validation_data = data->second;
  }
  return known;
}

/// Those whose losses can be compared with that of the newest one that has any, the best one first.
std::vector<KnownStep> rated_steps(std::span<const KnownStep> steps) {
  std::vector<KnownStep> rated;
  std::string data;  // older versions note none
  for (const KnownStep& known : std::views::reverse(steps)) {
    const bool is_other =
        !known.validation_data.empty() && !data.empty() && known.validation_data != data;
    if (known.validation_loss && !is_other) {
      data = data.empty() ? known.validation_data : data;
      rated.push_back(known);
    }
  }
  std::ranges::sort(rated, [](const KnownStep& a, const KnownStep& b) {
    return *a.validation_loss != *b.validation_loss ? *a.validation_loss < *b.validation_loss
                                                    : a.step > b.step;
  });
  return rated;
}

}  // namespace

std::vector<std::int64_t> steps_to_remove(std::span<const KnownStep> steps,
                                          const Retention& retention) {
  const std::size_t count = std::max(retention.keep_last, 0);
  if (count == 0 || steps.size() <= count) {
    return {};
  }
  std::set<std::int64_t> kept;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool is_multiple =
        retention.keep_every_steps > 0 && steps[i].step % retention.keep_every_steps == 0;
    if (i + count >= steps.size() || is_multiple) {
      kept.insert(steps[i].step);
    }
  }
  std::vector<KnownStep> rated = rated_steps(steps);
  rated.resize(std::min<std::size_t>(rated.size(), std::max(retention.keep_best, 0)));
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

std::optional<std::filesystem::path> best_step(const std::filesystem::path& directory) {
  const auto rated =
      rated_steps(known_steps(directory, std::numeric_limits<std::int64_t>::max(), true));
  return rated.empty() ? std::nullopt
                       : std::optional(directory / step_folder_name(rated.front().step));
}

std::vector<KnownStep> known_steps(const std::filesystem::path& directory, std::int64_t newest,
                                   bool with_losses) {
  std::vector<KnownStep> known;
  for (const std::int64_t step : list_steps(directory)) {
    if (step <= newest) {
      known.push_back(with_losses ? with_loss(directory, step) : KnownStep{.step = step});
    }
  }
  return known;
}

std::optional<PassedOver> why_not_removed(const std::filesystem::path& directory,
                                          std::int64_t step) {
  const std::filesystem::path folder = directory / step_folder_name(step);
  const auto names = names_in(folder);
  if (!names || link_target(folder)) {
    return std::nullopt;
  }
  const auto found = std::ranges::find_if(*names, [&](const std::string& name) {
    const bool is_known = name == manifest_name || name == index_name || payload_number(name) ||
                          name_of_temporary(name) || is_left_by_file_system(name);
    return !is_known || kind_of(folder / name) == EntryKind::directory;
  });
  if (found == names->end()) {
    return std::nullopt;
  }
  return PassedOver{.path = folder,
                    .step = step,
                    .why = format_message("is not removed, since it holds {}, which no checkpoint "
                                          "has; move that away",
                                          *found)};
}

std::vector<std::string> remove_steps(const std::filesystem::path& directory,
                                      std::span<const std::int64_t> steps,
                                      const std::function<void()>& ask) {
  std::vector<std::string> problems;
  for (const std::int64_t step : steps) {
    const std::filesystem::path folder = directory / step_folder_name(step);
    const auto leads_to = link_target(folder);
    if (const auto kept = why_not_removed(directory, step)) {
      problems.push_back(format_message("{}: {}", folder.string(), kept->why));
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
