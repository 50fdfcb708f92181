// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <system_error>

namespace fourfold::cli {
namespace fs = std::filesystem;
namespace {

constexpr Verb known_verbs[] = {
#include "verbs.inc"
};

bool is_verb_name(std::string_view name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return !name.empty() && name.front() != '-' &&
         name.find_first_not_of(allowed) == std::string_view::npos;
}

}  // namespace

std::vector<Verb> installed_verbs() {
  std::vector<Verb> verbs;
  std::ranges::copy_if(known_verbs, std::back_inserter(verbs),
                       [](const Verb& verb) { return program_of(verb.name).has_value(); });
  return verbs;
}

std::optional<fs::path> program_of(std::string_view verb) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error || !is_verb_name(verb)) {
    return std::nullopt;
  }
  const fs::path bin = self.parent_path();
  const std::string name = "fourfold-" + std::string(verb);
  const fs::path libexec = (bin / FOURFOLD_LIBEXEC_FROM_BIN).lexically_normal();
  for (const fs::path& candidate : {bin / name, libexec / name}) {
    if (fs::is_regular_file(candidate, error) && ::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return std::nullopt;
}

}  // namespace fourfold::cli
