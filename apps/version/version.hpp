// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/build_facts.hpp>

#include <string>

namespace fourfold::version {

/// The facts as one JSON object, indented, keys in the order of BuildFacts.
std::string to_json(const BuildFacts& facts);

}  // namespace fourfold::version
