// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/batch/accounting.hpp>
#include <fourfold/batch/attempt_log.hpp>
#include <fourfold/telemetry/exit_status.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fourfold::job {

/// What Slurm's accounting has of a start, asked by its sacct. Waits a few seconds for the records
/// of a step that has only just ended, and for an accounting that does not answer.
/// @return nothing where there is none, outside of jobs, and where it does not answer or know
std::optional<batch::AccountedStart> ask_accounting(const batch::Attempt& attempt);

/// What Slurm's controller has of these jobs, asked by its squeue for a few seconds. What is no
/// number is not asked for.
/// @return nothing outside of jobs, and where it does not answer
std::vector<batch::AccountedStart> ask_job_spans(std::vector<std::string> jobs);

/// Whether this job has that host among its nodes (SLURM_JOB_NODELIST), as Slurm's scontrol expands
/// them. True where that is not known.
bool is_own_node(const std::string& host);

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
