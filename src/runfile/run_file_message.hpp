// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/runfile/run_config.hpp>
#include <fourfold/runfile/run_key.hpp>

#include <string>
#include <string_view>

namespace fourfold::runfile {

/// Whether the run file has a table of this name.
bool is_table(std::string_view path);

/// What is wrong with a key that [table] does not have, and which one was probably meant.
std::string unknown_key(const std::string& table, const std::string& name);

/// What is wrong with a name that is no table, and what was probably meant.
std::string unknown_table(const std::string& name);

/// What is wrong with a key that stands in no table, and which one was probably meant.
std::string key_outside_table(const std::string& name);

/// What the key takes: "an integer of at least 1, or \"auto\"".
std::string expectation(const RunKey& key);

/// Throws UserError(ExitCode::config, located(message, origins)).
[[noreturn]] void refuse(const std::string& message, const Origins& origins);

}  // namespace fourfold::runfile
