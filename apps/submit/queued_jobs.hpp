// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/batch/submission.hpp>

namespace fourfold::submit {

/// Says so if jobs of the user have the name of this one, as far as Slurm can be asked.
/// @throws UserError (config) when jobs of another run have it and either is a chain: jobs of one
///   name wait for each other, and would be ended with it
void look_for_queued_jobs(const batch::Submission& submission);

}  // namespace fourfold::submit
