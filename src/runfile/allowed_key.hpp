// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/runfile/run_key.hpp>

#include <string>

namespace fourfold::runfile {

/// The key that --allow-change names. @throws UserError (config), with a suggestion, when there is
/// none
const RunKey& allowed_key(const std::string& name);

}  // namespace fourfold::runfile
