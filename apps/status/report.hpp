// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/batch/run_view.hpp>

#include <span>
#include <string>

namespace fourfold::status_program {

/// One JSON document of all runs; docs/run-directory.md has its keys.
std::string to_json(std::span<const batch::RunView> views);

}  // namespace fourfold::status_program
