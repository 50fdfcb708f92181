// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "disk/lease_file.hpp"
#include "disk/random_word.hpp"
#include "step/directory_names.hpp"
#include "step/step_listing.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/leftovers.hpp>
#include <fourfold/io/temporary_name.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

namespace fourfold::io {
namespace {

/// Of an AtomicFile.
bool is_unnamed(std::string_view name) {
  const auto of = name_of_temporary(name);
  return of && (*of == latest_name || *of == fast_word_name || of->starts_with(probe_prefix));
}

bool is_temporary(std::string_view name) {
  constexpr std::string_view lease_prefix = ".lease-";  // before it has its name
  return name.starts_with(temporary_prefix) || name.starts_with(trash_prefix) ||
         name.starts_with(probe_prefix) || name.starts_with(lease_prefix) || is_unnamed(name) ||
         name.starts_with(fmt::format("{}.tmp-", fast_word_name));  // of an older version
}

}  // namespace

std::vector<std::string> leftovers_in(const std::filesystem::path& directory, bool set_aside) {
  std::vector<std::string> leftovers;
  const std::string lease_name = LeaseOptions{}.name;
  const auto lease = read_lease(directory / lease_name);
  const std::string word = lease ? lease->word : "";
  for (const std::string& name : names_or_none(directory)) {
    if (is_temporary(name) || is_work_folder_of_another(name, lease_name, word) ||
        (set_aside && name.starts_with(set_aside_prefix))) {
      leftovers.push_back(name);
    }
  }
  return leftovers;
}

void warn_of_leftovers(std::span<const std::string> problems) {
  for (const std::string& problem : problems) {
    log::warning(format_message("what an earlier job left cannot be removed: {}", problem));
  }
}

std::vector<std::string> remove_leftovers(const std::filesystem::path& directory, bool set_aside) {
  std::vector<std::string> problems;
  for (const std::string& name : leftovers_in(directory, set_aside)) {
    const std::filesystem::path trash =
        work_folder_in(directory) / fmt::format("{}{}", trash_prefix, random_word());
    // At once: who has taken over meanwhile may go on with a part that it finds.
    if (::rename((directory / name).c_str(), trash.c_str()) != 0) {
      if (errno != ENOENT) {
        problems.push_back(format_message("{}: rename: {}", (directory / name).string(),
                                          std::system_category().message(errno)));
      }
      continue;
    }
    if (Defect defect = remove_tree(trash)) {
      problems.push_back(std::move(*defect));
    }
  }
  return problems;
}

}  // namespace fourfold::io
