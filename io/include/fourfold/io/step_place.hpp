// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Nothing may be written into the folder of a step: with anything else in it the checkpoint would
/// count as damaged. What a program is told to write to is looked at here before it writes. Local.
#pragma once

#include <filesystem>

namespace fourfold::io {

/// Whether `path`, which need not be there, lies in a step or is one, wherever links lead. A step
/// that is damaged counts if it is named like one.
bool is_place_in_step(const std::filesystem::path& path);
/// @throws UserError (config) when it does
void refuse_place_in_step(const std::filesystem::path& path);
/// The same for what is to be a folder of steps. @throws UserError (config)
void refuse_step_as_directory(const std::filesystem::path& directory);

}  // namespace fourfold::io
