// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/batch/submission.hpp>

namespace fourfold::submit {

/// Looks whether a job of this run waits or runs, or one of another run that saves in the same
/// checkpoint.dir, and says so if jobs of the user have the name of this one, as far as Slurm can
/// be asked.
/// @throws UserError (config) when there is one, unless submission.beside; for a chain also when a
///   chain of this run is there, whose script would change under it, or jobs of another run have
///   its name: jobs of one name wait for each other
void look_for_queued_jobs(const batch::Submission& submission);

}  // namespace fourfold::submit
