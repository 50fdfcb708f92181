// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/batch/run_view.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace fourfold::status_program {

/// What people read about a run, line by line. Text from its files has no control characters.
/// @param most_attempts  lines of the job chain: of more, the newest; 0: all
std::vector<std::string> page_of(const batch::RunView& view, std::size_t most_attempts = 0);

/// The same on one line: "runs/gpt2: running, step 120 of 20000 (0.6%), loss 3.4121, 4h12m left".
std::string line_of(const batch::RunView& view);

}  // namespace fourfold::status_program
