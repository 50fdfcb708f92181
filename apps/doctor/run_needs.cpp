// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_needs.hpp"

#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/train/elastic_mesh.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/rank_plan.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/state_layouts.hpp>

#include <algorithm>
#include <numeric>

namespace fourfold::doctor {
namespace {

/// Index, manifest and what else lies in a step, with its folder.
constexpr std::int64_t files_beside_payloads = 8;

/// Steps that will lie there together at most, less those that do already; the one being written
/// counts.
std::int64_t steps_to_come(const runfile::RunConfig& config) {
  const runfile::CheckpointConfig& checkpoint = config.checkpoint;
  const std::int64_t saves =
      checkpoint.every_steps > 0 ? config.train.steps / checkpoint.every_steps + 1 : 1;
  std::int64_t there = 0;
  comm::capture_failure([&] {  // what cannot be read shows when it is probed
    there = io::list_steps(checkpoint.dir).size();
  });
  const std::int64_t kept = checkpoint.keep_last > 0
                                ? std::min(saves, checkpoint.keep_last + checkpoint.keep_best + 1)
                                : saves;
  return std::max<std::int64_t>(1, kept - there);
}

Directory checkpoint_directory(const runfile::RunConfig& config, std::int64_t save_bytes,
                               int ranks) {
  const std::int64_t steps = steps_to_come(config);
  return {.key = "checkpoint.dir",
          .path = config.checkpoint.dir,
          .use = Directory::Use::shared,
          .least_bytes = config.checkpoint.keep_last > 0 ? steps * save_bytes : save_bytes,
          .needed_bytes = steps * save_bytes,
          .needed_files =
              steps * (files_beside_payloads + (config.checkpoint.files == "rank" ? ranks : 1))};
}

std::vector<Directory> directories_of(const runfile::RunConfig& config, const RunNeeds& needs,
                                      int ranks, std::int64_t ranks_on_node) {
  std::vector<Directory> directories{
      checkpoint_directory(config, needs.save_bytes, ranks),
      {.key = "log.dir", .path = config.log.dir, .use = Directory::Use::first_rank}};
  if (!config.data.train.empty()) {
    directories.push_back({.key = "data.train",
                           .path = config.data.train.front(),
                           .use = Directory::Use::data,
                           .patterns = config.data.train});
  }
  if (!config.checkpoint.node_local_dir.empty()) {
    const std::int64_t copies = (config.checkpoint.node_local_keep_last + 1) *
                                (config.checkpoint.node_local_partner ? 2 : 1);
    const std::int64_t bytes = copies * needs.most_saved_by_rank_bytes * ranks_on_node;
    directories.push_back({.key = "checkpoint.node_local_dir",
                           .path = config.checkpoint.node_local_dir,
                           .use = Directory::Use::node,
                           .least_bytes = bytes,
                           .needed_bytes = bytes});
  }
  if (config.offload.optimizer == runfile::StateTier::nvme) {
    const std::int64_t bytes = needs.offloaded_bytes * ranks_on_node;
    directories.push_back({.key = "offload.optimizer",
                           .path = config.offload.nvme_directory,
                           .use = Directory::Use::node,
                           .least_bytes = bytes,
                           .needed_bytes = bytes});
  }
  return directories;
}

/// The run on these ranks. A batch job begins it with what fits what it has (`fourfold job begin`):
/// with mesh.dp = "auto" some ranks may be left over.
train::ResolvedRun run_on(const runfile::EffectiveConfig& effective, int ranks) {
  auto has = train::job_allocation();
  if (!has) {
    return train::resolve_run(effective, ranks);
  }
  has->tasks = ranks;
  return train::choose_mesh(effective, *has);
}

/// Whatever does not fit these ranks is thrown, as training would.
void plan(const runfile::EffectiveConfig& effective, int rank, int ranks, RunNeeds& needs) {
  const train::ResolvedRun run = run_on(effective, ranks);
  needs.mesh = run.mesh;
  const bool takes_part = rank < run.mesh.ranks();
  const train::RankPlan plan = train::plan_rank(run, takes_part ? rank : 0);
  const std::vector<std::int64_t> bytes = train::saved_bytes(run);
  needs.save_bytes = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  needs.most_saved_by_rank_bytes = std::ranges::max(bytes);
  if (takes_part) {
    needs.offloaded_bytes = plan.file_bytes;
    needs.rank_bytes = train::node_bytes(run, {&plan, 1});
  }
}

}  // namespace

RunNeeds needs_of(const Arguments& arguments, int rank, int ranks, std::int64_t ranks_on_node) {
  RunNeeds needs;
  if (!arguments.run_file.empty()) {
    const runfile::EffectiveConfig effective =
        train::load_run(arguments.run_file, arguments.overrides);
    runfile::log_remarks(effective);
    needs.precision = effective.config.train.precision;
    needs.algorithm = effective.config.mesh.host_collectives;
    if (const auto failure = comm::capture_failure([&] { plan(effective, rank, ranks, needs); })) {
      needs.mesh.reset();
      needs.problem = failure->message;
    }
    needs.directories = directories_of(effective.config, needs, ranks, ranks_on_node);
  }
  for (const std::string& directory : arguments.directories) {
    needs.directories.push_back({.key = "--dir", .path = directory});
  }
  return needs;
}

}  // namespace fourfold::doctor
