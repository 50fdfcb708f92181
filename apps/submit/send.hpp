// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/batch/submission.hpp>

#include <string>

namespace fourfold::submit {

/// Writes the script where a chain finds it again, submits it, and prints the job's number. Where
/// sbatch takes no job, the script of an earlier submission is back at its place.
/// @throws UserError: no_progress where the run has been told to stop; config where jobs in the
///   queue or a file at the script's place are in the way; cannot_write; as submit_script()
ExitCode send(const batch::Submission& submission, const std::string& script);

}  // namespace fourfold::submit
