// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "source_folder.hpp"

namespace fourfold::harness {

std::string source_folder() {
  return FOURFOLD_SOURCE_DIR;
}

std::string build_folder() {
  return FOURFOLD_BUILD_DIR;
}

}  // namespace fourfold::harness
