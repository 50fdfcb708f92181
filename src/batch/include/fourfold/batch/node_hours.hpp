// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/batch/run_attempts.hpp>

#include <span>

namespace fourfold::batch {

struct NodeHours {
  double used = 0;
  double lost = 0;  ///< of these
};

/// What a run has cost so far, and how much of that brought it no further.
///
/// Attempt i has n_i nodes (those of its job, also where it leaves one out), holds them from b_i to
/// e_i and makes the steps from f_i to l_i:
///
///     used = sum over i of n_i (e_i - b_i)         lost = sum over i of n_i (e_i - t_i)
///
/// where t_i is the time up to which its work counts. k_i is the step that is kept of it: the
/// lowest from which a later attempt that made steps has started, but not more than l_i. Of one
/// after which none made a step, what can still be gone on from is kept: the newest step it has
/// saved; all, if its code says that it was saved (finished, stopped_saved); all, while it goes on.
///
/// A job holds its nodes before its script starts the run, and after that has ended: b_i and e_i
/// are what Slurm says where that is known (Attempt::job_began_unix_s, released), else when the
/// attempt began and ended. A later launch in a job begins when the one before it ended. Of the
/// time after an attempt's end only the nodes count that Slurm had not taken out of its job before.
///
/// - t_i = b_i if it made no step (l_i <= f_i), or none was kept (k_i <= f_i)
/// - t_i = e_i if all steps were kept (k_i >= l_i), or it goes on
/// - else t_i is when step k_i was on disk
///
/// So lost is: what a later start computed again, the time between the last step that was saved and
/// the end of an attempt that did not save, and all of an attempt that made no step. A step that no
/// record of a checkpoint has (a node-local tier's) is placed by a straight line between those that
/// the records have. The time in which a node was dead and nobody had noticed yet is not known: an
/// attempt whose end nobody noted lasts until its last sign of life.
///
/// @param attempts    as attempts_of_run() has them
/// @param goes_on     newest_of_run() does, until now
/// @param now_unix_s  seconds since 1970
NodeHours node_hours(std::span<const RunAttempt> attempts, bool goes_on, double now_unix_s);

}  // namespace fourfold::batch
