// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/batch/submission.hpp>

#include <string>
#include <vector>

namespace fourfold::submit {

/// Variables of the environment that would make another job of the script than the one that was
/// checked: sbatch takes its variables over the lines of a script, and a job that belongs to
/// another chain hands on whose it is.
std::vector<std::string> variables_in_the_way(const batch::Submission& submission);

/// Variables that are handed on to the batch scripts, which would refuse what they say.
/// @throws UserError (usage)
void refuse_wrong_variables();

/// Takes those that are set out of this process's environment, and says so.
void clear_the_way(const batch::Submission& submission);

}  // namespace fourfold::submit
