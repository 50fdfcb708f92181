// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Product choices as text and in files.
#pragma once

#include <fourfold/kernels/matmul_tuning.hpp>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::train {

struct LibraryChoices {
  std::string library;  ///< kernels::product_library()
  std::vector<kernels::ProductChoice> choices;
  friend bool operator==(const LibraryChoices&, const LibraryChoices&) = default;
};

/// JSON that choices_from_json() reads.
std::string to_json(const LibraryChoices& choices);
/// Nothing when `text`, of whatever origin, is no such JSON.
std::optional<LibraryChoices> choices_from_json(std::string_view text);

/// Of the first one's library: the choices of all, by name; the first one's where several have one.
LibraryChoices merged(std::span<const LibraryChoices> all);

/// Nothing when there is no file. @throws UserError (config) when there is one of another kind
std::optional<LibraryChoices> read_product_choices(const std::filesystem::path& path);
/// Leaves a file that says the same as it is. @throws UserError when it cannot be written
void write_product_choices(const std::filesystem::path& path, const LibraryChoices& choices);

}  // namespace fourfold::train
