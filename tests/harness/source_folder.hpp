// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Where the files of the repository are that a test reads. The path is compiled into one object,
/// so that all others are the same in every clone, and ccache has them.
#pragma once

#include <string>

namespace fourfold::harness {

/// The root of the repository, absolute.
std::string source_folder();

/// The folder of this build, absolute: programs are in its bin, test programs in its tests.
std::string build_folder();

/// Inputs and expected results that are committed.
inline std::string golden_folder() {
  return source_folder() + "/tests/golden";
}

}  // namespace fourfold::harness
