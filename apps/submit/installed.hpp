// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace fourfold::submit {

/// Where this program's installation, or build tree, has what a batch script needs.
struct Installed {
  std::filesystem::path front_door;  ///< fourfold
  std::filesystem::path scripts;     ///< the folder of train.sbatch
};

/// @throws UserError (config) when one of them is missing
Installed find_installed();

}  // namespace fourfold::submit
