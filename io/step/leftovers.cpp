// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "disk/lease_file.hpp"
#include "disk/temporary.hpp"
#include "step/directory_names.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/step_place.hpp>
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
  return of && (*of == latest_name || *of == tier_id_name || is_probe(*of));
}

bool is_temporary(std::string_view name) {
  return is_step_with_word(temporary_prefix, name) || is_random_word_after(trash_prefix, name) ||
         is_probe(name) || is_lease_on_its_way(LeaseOptions{}.name, name) || is_unnamed(name);
}

}  // namespace

bool is_lease_on_its_way(std::string_view lease_name, std::string_view name) {
  return is_random_word_after(fmt::format("{}-", lease_name), name);
}

std::vector<std::string> leftovers_in(const std::filesystem::path& directory, bool set_aside) {
  std::vector<std::string> leftovers;
  const std::string lease_name = LeaseOptions{}.name;
  const auto lease = read_lease(directory / lease_name);
  const std::string word = lease ? lease->word : "";
  for (const std::string& name : names_or_none(directory)) {
    if (is_temporary(name) || is_work_folder_of_another(name, lease_name, word) ||
        (set_aside && is_step_with_word(set_aside_prefix, name))) {
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
