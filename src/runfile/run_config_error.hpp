// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/runfile/run_config.hpp>

#include <string>

namespace fourfold::runfile {

/// Throws UserError(ExitCode::config, located(message, origins)).
[[noreturn]] void refuse(const std::string& message, const Origins& origins);

}  // namespace fourfold::runfile
