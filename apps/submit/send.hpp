// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/batch/submission.hpp>
#include <fourfold/runfile/run_input.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fourfold::submit {

/// What all jobs of a submission are to train, for batch::keep_run().
struct RunToKeep {
  std::string text;
  std::vector<runfile::RunInput> inputs;
};

/// Keeps the run, writes the script where a chain finds it again, submits it, and prints the job's
/// number. Where sbatch takes no job, nothing is kept, and the script of an earlier submission is
/// back at its place.
/// @param run  nothing: the first start keeps it
/// @throws UserError: no_progress where the run has been told to stop; config where jobs in the
///   queue or a file at the script's place are in the way; cannot_write; as submit_script()
ExitCode send(batch::Submission submission, const std::optional<RunToKeep>& run);

}  // namespace fourfold::submit
