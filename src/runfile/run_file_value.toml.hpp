// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/runfile/run_key.hpp>

#include <toml++/toml.h>

#include <optional>
#include <string>

namespace fourfold::runfile {

/// The node as a value of the key, if type, bounds and choices allow it.
std::optional<Value> typed_value(const RunKey& key, const toml::node& node);

/// What is wrong with a node for which typed_value() gives nothing.
std::string wrong_value(const RunKey& key, const toml::node& node);

}  // namespace fourfold::runfile
