// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace fourfold::submit {

/// Where this program's installation, or build tree, has what a batch script needs.
struct Installed {
  std::filesystem::path front_door;  ///< fourfold
  std::filesystem::path scripts;     ///< the folder of train.sbatch

  /// Of elsewhere.bash there: what stands in a batch script itself, without that file's head.
  /// @throws UserError (config) when it cannot be read
  std::string functions() const;
};

/// @throws UserError (config) when one of them is missing
Installed find_installed();

}  // namespace fourfold::submit
