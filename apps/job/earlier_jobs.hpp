// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/batch/attempt_log.hpp>
#include <fourfold/telemetry/exit_status.hpp>

namespace fourfold::job {

/// Notes, before `next` begins, what nobody was left to note of the jobs before it in its chain:
/// the end of the last start, when Slurm took back its nodes, and a job that ended before its
/// script could begin. Asks Slurm, for seconds at most; what it does not say is left out.
/// @param next              job_began_unix_s is set where Slurm tells it
/// @param left              the exit.json that lies there
/// @param last_word_unix_s  of the last start; 0: none
/// @throws UserError (cannot_write)
void note_earlier_jobs(const batch::AttemptLog& log, batch::Attempt& next,
                       const telemetry::ExitRecord& left, double last_word_unix_s);

}  // namespace fourfold::job
