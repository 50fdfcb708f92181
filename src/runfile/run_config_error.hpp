// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/runfile/run_config.hpp>

#include <string>

namespace fourfold::runfile {

/// `message` behind the place of the first key in it that a person wrote: "run.toml:7:1:
/// model.heads = ...".
std::string located(const std::string& message, const Origins& origins);

/// Throws UserError(ExitCode::config, located(message, origins)).
[[noreturn]] void refuse(const std::string& message, const Origins& origins);

}  // namespace fourfold::runfile
