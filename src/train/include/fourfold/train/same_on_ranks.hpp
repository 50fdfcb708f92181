// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <span>
#include <string>
#include <vector>

namespace fourfold::train {

/// Every key of the run file with its value, a line each: "optim.lr = 0.001".
std::vector<std::string> lines_of(const runfile::RunConfig& config);

/// Ranks can be started with different run files or options, and would train replicas of different
/// models without noticing. Collective: one broadcast of the lines and one gather of the first that
/// differs.
/// @param lines  without newlines; which they are agrees on all ranks, what they say should
/// @throws UserError (exit code config) on all ranks, naming the first line that differs, what it
/// says and on which ranks
void require_same_on_ranks(std::span<const std::string> lines, comm::Communicator& world);

}  // namespace fourfold::train
