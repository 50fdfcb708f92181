// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"

#include <fourfold/batch/submission.hpp>
#include <fourfold/runfile/run_config.hpp>

namespace fourfold::submit {

/// The job that the arguments ask for, with what they leave out filled in, checked against the run
/// file and against what Slurm's commands say here. What was found is told in the log.
/// @throws UserError: usage; config, naming the key or the option that has to change
batch::Submission checked_submission(const Arguments& arguments,
                                     const runfile::EffectiveConfig& effective);

}  // namespace fourfold::submit
