// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace fourfold::runfile {

/// The full names of the keys that are called `name` in their tables, in the order of the run file:
/// "train.steps" for "steps".
std::vector<std::string> keys_called(const std::string& name);

}  // namespace fourfold::runfile
