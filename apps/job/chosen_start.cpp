// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "chain_run.hpp"
#include "job.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/batch/submission.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/elastic_mesh.hpp>

#include <fmt/format.h>

#include <cstdint>

namespace fourfold::job {

namespace {

/// Which numbers of the nodes that the chain asks for leave some idle; none where it asks for a
/// fixed number.
std::vector<int> idle_with_nodes(const runfile::EffectiveConfig& effective,
                                 const train::Allocation& has) {
  const std::string asked = environment_text("FOURFOLD_NODES");
  if (asked.empty()) {
    return {};
  }
  try {
    const batch::NodeRange range = batch::node_range_of(asked);
    return range.least < range.most
               ? train::counts_with_idle_nodes(effective, range.least, range.most,
                                               has.tasks / has.nodes, has)
               : std::vector<int>{};
  } catch (const UserError&) {  // sbatch takes what this is not: "1k"
    return {};
  }
}

ChosenStart start_on(const train::Allocation& has, const runfile::EffectiveConfig& effective) {
  const train::ElasticRun chosen = train::choose_mesh(effective, has);
  const std::int64_t ranks = chosen.mesh.ranks();
  const auto overrides = train::overrides_for(chosen, effective.config, has.tasks);
  if (!overrides.empty()) {
    log::info(format_message(
        "{} node{}, {} task{}: mesh {}, micro-batches of {}{}", has.nodes,
        has.nodes == 1 ? "" : "s", has.tasks, has.tasks == 1 ? "" : "s", chosen.mesh.str(),
        chosen.batches.micro_batch,
        ranks == has.tasks ? "" : format_message("; tasks not used: {}", has.tasks - ranks)));
  }
  ChosenStart start{
      .lines = fmt::format("start\n{}\n", ranks == has.tasks ? "all" : fmt::format("{}", ranks)),
      .idle_nodes = train::idle_nodes(chosen, has),
      .idle_with_nodes = idle_with_nodes(effective, has)};
  for (const std::string& one : overrides) {
    start.lines += fmt::format("--set\n{}\n", one);
  }
  return start;
}

}  // namespace

std::optional<ChosenStart> chosen_start(const runfile::EffectiveConfig& effective) {
  const auto has = train::job_allocation();
  if (!has) {
    return ChosenStart{.lines = "start\nall\n"};
  }
  try {
    return start_on(*has, effective);
  } catch (const UserError& error) {
    if (BatchJob::of_this_process().launch == 0) {
      throw;
    }
    log::info(error.what());
    return std::nullopt;
  }
}

batch::Attempt this_attempt() {
  batch::Attempt attempt{.start = BatchJob::of_this_process()};
  BatchJob& job = attempt.start;
  // Starts of one job belong together; without a job, nothing does.
  if (job.chain.empty()) {
    job.chain = job.id.empty() ? fmt::format("none-{:.6f}", unix_time_s()) : job.id;
  }
  job.id = job.id.empty() ? "none" : job.id;
  attempt.nodes = static_cast<int>(environment_number("SLURM_JOB_NUM_NODES", 1));
  attempt.held_nodes = static_cast<int>(environment_number("FOURFOLD_HELD_NODES", 0));
  attempt.began_unix_s = unix_time_s();
  return attempt;
}

batch::AttemptLog log_in(const std::filesystem::path& log_dir) {
  return batch::AttemptLog(telemetry::RunFiles(log_dir).attempts());
}

}  // namespace fourfold::job
