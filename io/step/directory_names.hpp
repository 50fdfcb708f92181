// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What lies in a directory of steps beside them. docs/checkpoint-format.md, section 1.
#pragma once

#include "disk/work_folder.hpp"  // trash_prefix: being removed

#include <string_view>

namespace fourfold::io {

inline constexpr std::string_view step_prefix = "step-";
inline constexpr std::string_view latest_name = "LATEST";
inline constexpr std::string_view fast_word_name = ".fast-level";
inline constexpr std::string_view temporary_prefix = ".tmp-step-";     ///< being written
inline constexpr std::string_view set_aside_prefix = "damaged-step-";  ///< made way
inline constexpr std::string_view probe_prefix = ".probe-";  ///< tries what can be done there

}  // namespace fourfold::io
