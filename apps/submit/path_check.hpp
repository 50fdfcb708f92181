// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/runfile/run_config.hpp>

namespace fourfold::submit {

/// Whether the files that a run reads are there, its token files, and the folder that it saves in
/// is or can be made. What lies below a folder of / that is not here (a file system that this node
/// does not mount) cannot be told, and is named in a warning.
/// @param warns  of all that is missing, in place of refusing it
/// @throws UserError (config) naming each name that is missing
void check_paths(const runfile::EffectiveConfig& effective, bool warns);

}  // namespace fourfold::submit
