// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "this_attempt.hpp"

#include <fourfold/base/batch_job.hpp>
#include <fourfold/base/clock.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/job_allocation.hpp>

#include <fmt/format.h>

namespace fourfold::job {

batch::Attempt this_attempt() {
  const BatchJob job = BatchJob::of_this_process();
  batch::Attempt attempt;
  attempt.job = job.id.empty() ? "none" : job.id;
  // Starts of one job belong together; without a job, nothing does.
  attempt.chain = !job.chain.empty() ? job.chain
                  : !job.id.empty()  ? job.id
                                     : fmt::format("none-{:.6f}", unix_time_s());
  attempt.restart = job.restarts;
  attempt.launch = job.launch;
  attempt.nodes = static_cast<int>(train::number_in("SLURM_JOB_NUM_NODES", 1));
  attempt.held_nodes = static_cast<int>(train::number_in("FOURFOLD_HELD_NODES", 0));
  attempt.began_unix_s = unix_time_s();
  return attempt;
}

batch::AttemptLog log_in(const std::filesystem::path& log_dir) {
  return batch::AttemptLog(telemetry::RunFiles(log_dir).attempts());
}

}  // namespace fourfold::job
