// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which steps a directory holds. Everything that looks for steps asks here, so that all agree on
/// what is one: a folder of a step's name, or a link that leads to a folder. Local.
#pragma once

#include <fourfold/io/step_place.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::io {

/// The step in "step-000000010"; nothing for other names.
std::optional<std::int64_t> step_of_folder(std::string_view name) noexcept;
/// None when there is no such folder. One that is there but cannot be read, or a link that leads
/// nowhere, must not pass for empty: a run would silently start anew. @throws UserError (config)
std::vector<std::string> names_or_none(const std::filesystem::path& directory);

struct StepListing {
  std::vector<std::int64_t> steps;  ///< committed there, ascending
  std::vector<PassedOver> passed_over;
};
/// @throws as names_or_none()
StepListing list_directory(const std::filesystem::path& directory);
/// The steps alone.
std::vector<std::int64_t> steps_in(const std::filesystem::path& directory);

}  // namespace fourfold::io
