// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What lies in a directory of steps beside them. docs/checkpoint-format.md, section 1.
#pragma once

#include "disk/temporary.hpp"
#include "disk/work_folder.hpp"  // trash_prefix: being removed

#include <algorithm>
#include <string_view>

namespace fourfold::io {

inline constexpr std::string_view step_prefix = "step-";
inline constexpr std::string_view latest_name = "LATEST";
inline constexpr std::string_view tier_id_name = ".fast-level";
inline constexpr std::string_view temporary_prefix = ".tmp-step-";     ///< being written
inline constexpr std::string_view set_aside_prefix = "damaged-step-";  ///< made way
inline constexpr std::string_view probe_prefix = ".probe-";  ///< tries what can be done there

/// Whether `name` is PREFIX, the number of a step, and a random word: "damaged-step-000000010-...".
inline bool is_step_with_word(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) {
    return false;
  }
  const std::string_view rest = name.substr(prefix.size());
  const std::size_t dash = rest.find('-');
  return dash != std::string_view::npos && dash > 0 &&
         rest.substr(0, dash).find_first_not_of("0123456789") == std::string_view::npos &&
         is_random_word(rest.substr(dash + 1));
}

/// Whether `name` is a probe's: of a save, of a node ("-3" at the end) or of `fourfold doctor`,
/// which renames and links its own.
inline bool is_probe(std::string_view name) {
  constexpr std::string_view doctors = "doctor-";
  constexpr std::size_t word_size = 16;
  if (!name.starts_with(probe_prefix)) {
    return false;
  }
  name.remove_prefix(probe_prefix.size());
  const bool is_doctors = name.starts_with(doctors);
  name.remove_prefix(is_doctors ? doctors.size() : 0);
  const std::string_view rest = name.substr(std::min(word_size, name.size()));
  const bool is_of_node = rest.size() > 1 && rest.front() == '-' &&
                          rest.find_first_not_of("0123456789", 1) == std::string_view::npos;
  return is_random_word(name.substr(0, word_size)) &&
         (rest.empty() || (is_doctors ? rest == "-renamed" || rest == "-linked" : is_of_node));
}

}  // namespace fourfold::io
