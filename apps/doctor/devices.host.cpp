// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "place_checks.hpp"

namespace fourfold::doctor {

/// One source for each kind of device, chosen by CMake.
Check devices_check() {
  Check check("devices");
  check.say("no GPUs in this build: ranks compute on their cores");
  return check;
}

}  // namespace fourfold::doctor
