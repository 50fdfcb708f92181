// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "submission_check.hpp"

#include "send.hpp"

#include <fourfold/base/build_facts.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/batch/cluster_facts.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/elastic_mesh.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

namespace fourfold::submit {
namespace {

namespace fs = std::filesystem;
using batch::NodeRange;
using batch::Partition;

[[noreturn]] void refuse(const std::string& message) {
  throw UserError(ExitCode::config, message);
}

/// Ranks of the run file's mesh; nothing when mesh.dp is "auto".
std::optional<std::int64_t> fixed_ranks(const runfile::MeshConfig& mesh) {
  return mesh.shape.dp == 0 ? std::nullopt : std::optional(mesh.shape.ranks());
}

NodeRange nodes_of(const Arguments& arguments, std::optional<std::int64_t> ranks) {
  if (!arguments.nodes.empty()) {
    return batch::node_range_of(arguments.nodes);
  }
  if (!ranks || arguments.tasks_per_node == 0) {
    throw UserError(ExitCode::usage,
                    "how many nodes the job wants is not known (mesh.dp is \"auto\", or "
                    "--tasks-per-node is not given); give --nodes");
  }
  const auto nodes =
      static_cast<int>((*ranks + arguments.tasks_per_node - 1) / arguments.tasks_per_node);
  return {nodes, nodes};
}

int tasks_per_node_of(const Arguments& arguments, const NodeRange& nodes,
                      std::optional<std::int64_t> ranks, const std::vector<Partition>& partitions) {
  if (arguments.tasks_per_node > 0) {
    return arguments.tasks_per_node;
  }
  if (ranks && nodes.least == nodes.most && *ranks % nodes.most == 0) {
    return static_cast<int>(*ranks / nodes.most);
  }
  if (partitions.empty()) {
    throw UserError(ExitCode::usage,
                    "how many ranks a node takes is not known here (there is no sinfo to ask); "
                    "give --tasks-per-node");
  }
  const int cpus = std::ranges::min_element(partitions, {}, &Partition::cpus)->cpus;
  return std::max(1, cpus / arguments.cpus_per_task);
}

void check_ranks(const NodeRange& nodes, int tasks_per_node, std::optional<std::int64_t> ranks) {
  if (!ranks) {
    return;
  }
  if (nodes.least != nodes.most) {
    refuse(format_message(
        "--nodes={} with a mesh of {} ranks (mesh.dp is a number, and more or fewer nodes make "
        "other replicas); add --set mesh.dp=auto, or give one number of nodes",
        nodes.str(), *ranks));
  }
  const std::int64_t most = nodes.most;
  const std::int64_t tasks = most * tasks_per_node;
  if (tasks != *ranks) {
    refuse(
        format_message("--nodes={} and --tasks-per-node={} make {} {}, and the mesh has {}; give "
                       "--nodes={} and --tasks-per-node={}, or add --set mesh.dp=auto",
                       nodes.most, tasks_per_node, tasks, tasks == 1 ? "rank" : "ranks", *ranks,
                       (*ranks + tasks_per_node - 1) / tasks_per_node,
                       std::min<std::int64_t>(tasks_per_node, *ranks)));
  }
}

/// What a command of Slurm prints; empty where it does not answer.
std::string answer_of(const std::vector<std::string>& command) {
  const auto output = ask(command);
  return output && output->is_answer() ? output->text : "";
}

/// The memory that the job may use on a node of one of the partitions that it may run in.
/// @param partition  null: not known
train::Allocation memory_in(const Partition* partition, const Arguments& arguments,
                            int tasks_per_node) {
  const std::string partition_text =
      partition != nullptr
          ? answer_of({"scontrol", "--oneliner", "show", "partition", partition->name})
          : "";
  const std::string config = partition != nullptr ? answer_of({"scontrol", "show", "config"}) : "";
  const batch::MemoryGrant grant = batch::memory_of_job(arguments.more, partition_text, config,
                                                        tasks_per_node * arguments.cpus_per_task);
  const std::size_t there = partition != nullptr ? partition->node_bytes : 0;
  if (there > 0 && grant.bytes > there) {
    log::warning(format_message(
        "{}: nodes of partition {} have as little as {} MiB, of which Slurm gives such a job none",
        grant.set_by, partition->name, there >> 20U));
  }
  if (grant.bytes == 0 || (there > 0 && there <= grant.bytes)) {
    return {.node_bytes = there};
  }
  return {.node_bytes = grant.bytes,
          .limited_by = grant.set_by,
          .most_node_bytes = there,
          .memory_option = "--sbatch=--mem"};
}

/// The memory that the job may use on a node, in whichever of the partitions it runs.
train::Allocation memory_of(const Arguments& arguments, const std::vector<Partition>& partitions,
                            int tasks_per_node) {
  constexpr double gib = 1 << 30;
  if (arguments.node_memory_gib > 0) {
    return {.node_bytes = static_cast<std::size_t>(arguments.node_memory_gib * gib)};
  }
  if (partitions.empty()) {
    return memory_in(nullptr, arguments, tasks_per_node);
  }
  // 0 is not known: of those that are, the least counts.
  const auto least_first = [](const train::Allocation& one) { return one.node_bytes - 1; };
  std::vector<train::Allocation> memory;
  for (const Partition& partition : partitions) {
    memory.push_back(memory_in(&partition, arguments, tasks_per_node));
  }
  return *std::ranges::min_element(memory, {}, least_first);
}

/// @param on_nodes  memory, and what limits it
void tell_mesh(const runfile::EffectiveConfig& effective, int nodes, std::int64_t tasks_per_node,
               train::Allocation on_nodes) {
  constexpr double gib = 1 << 30;
  const std::int64_t tasks = nodes * tasks_per_node;
  on_nodes.nodes = nodes;
  on_nodes.tasks = tasks;
  const train::ElasticRun chosen = train::choose_mesh(effective, on_nodes);
  const auto on_node = static_cast<double>(std::min(chosen.mesh.ranks(), tasks_per_node));
  std::string text =
      fmt::format("{} node{}: mesh {}, micro-batches of {}, {:.2f} GiB on a node", nodes,
                  nodes == 1 ? "" : "s", chosen.mesh.str(), chosen.batches.micro_batch,
                  static_cast<double>(chosen.rank_bytes) * on_node / gib);
  if (on_nodes.node_bytes > 0) {
    text += fmt::format(" of {:.2f}", static_cast<double>(on_nodes.node_bytes) / gib);
  }
  if (!on_nodes.limited_by.empty()) {
    text += format_message(" ({})", on_nodes.limited_by);
  }
  const std::int64_t unused = tasks - chosen.mesh.ranks();
  if (const int idle = train::idle_nodes(chosen, on_nodes); idle > 0) {
    text += fmt::format("; {} of the nodes {} idle", idle, idle == 1 ? "is" : "are");
  } else if (unused > 0) {
    text += fmt::format("; {} of {} tasks {} not used", unused, tasks, unused == 1 ? "is" : "are");
  }
  log::info(text);
}

/// Of a range, what lies between its ends: tell_mesh() speaks of these.
void tell_idle_nodes(const runfile::EffectiveConfig& effective, NodeRange nodes, int tasks_per_node,
                     const train::Allocation& on_nodes) {
  if (nodes.most - nodes.least < 2) {
    return;
  }
  const std::vector<int> with_idle = train::counts_with_idle_nodes(
      effective, nodes.least + 1, nodes.most - 1, tasks_per_node, on_nodes);
  if (!with_idle.empty()) {
    log::info(format_message("with {} nodes some would be idle: no mesh of this run takes all",
                             ranges_text(with_idle)));
  }
}

/// Ranks that srun starts with --mpi=none do not know of each other.
[[noreturn]] void refuse_singletons(const std::string& offered) {
  const auto mpi = batch::mpi_of(build_facts().libraries, offered);
  refuse(format_message(
      "--mpi=none: every task would train by itself, as rank 0 of 1; {}",
      mpi && !mpi->empty() ? "give --mpi=" + *mpi : "choose one of `srun --mpi=list`"));
}

/// What `srun --mpi=` has to be; empty: as the site's file or Slurm's default says.
std::string mpi_for(const Arguments& arguments, bool has_several_ranks) {
  const auto list = ask({"srun", "--mpi=list"});
  const std::string offered = list && list->is_answer() ? list->text + "\n" + list->errors : "";
  const bool is_known = batch::offers_any_mpi(offered);
  if (!arguments.mpi.empty()) {
    if (arguments.mpi == "none" && has_several_ranks) {
      refuse_singletons(offered);
    }
    if (is_known && !batch::offers_mpi(offered, arguments.mpi)) {
      refuse(format_message(
          "--mpi={}: this Slurm has none of that name; choose one of `srun --mpi=list`",
          arguments.mpi));
    }
    return arguments.mpi;
  }
  if (!arguments.site.empty() || !is_known) {
    return "";
  }
  const auto mpi = batch::mpi_of(build_facts().libraries, offered);
  if (!mpi) {
    log::warning(
        "which srun --mpi= this build's MPI needs is not known; give --mpi if it is not Slurm's "
        "default");
    return "";
  }
  if (mpi->empty()) {
    refuse(
        "this Slurm has no --mpi by which the ranks of this build could meet (`srun --mpi=list`); "
        "every task would be rank 0 of 1. Ask the site for its PMI plugin, or build fourfold with "
        "the site's MPI");
  }
  return *mpi;
}

void check_site(const std::string& site, const fs::path& scripts) {
  const fs::path file =
      site.find('/') != std::string::npos ? fs::path(site) : scripts / "sites" / (site + ".sh");
  std::error_code ignored;
  if (site.empty() || fs::is_regular_file(file, ignored)) {
    return;
  }
  std::set<std::string> known;
  for (const auto& entry : fs::directory_iterator(scripts / "sites", ignored)) {
    known.insert(entry.path().stem().string());
  }
  std::string names;
  for (const std::string& name : known) {
    names += (names.empty() ? "" : ", ") + name;
  }
  refuse(format_message("--site={}: there is no {}; choose one of {}, or give a path", site,
                        file.string(), names));
}

/// "fourfold-first" of runs/first, with nothing that Slurm would take for something else.
std::string name_of(const Arguments& arguments, const fs::path& log_dir) {
  if (!arguments.name.empty()) {
    return arguments.name;
  }
  std::string name = "fourfold-" + log_dir.filename().string();
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '-');
  return name;
}

/// What Slurm may give of a range of nodes: no more than the largest of the partitions has.
NodeRange nodes_to_get(const NodeRange& nodes, const std::vector<Partition>& partitions) {
  int most = 0;
  for (const Partition& partition : partitions) {
    const int of_job = partition.most_nodes > 0 ? std::min(partition.most_nodes, partition.nodes)
                                                : partition.nodes;
    most = std::max(most, of_job);
  }
  if (most == 0 || most >= nodes.most) {
    return nodes;
  }
  log::info(format_message("--nodes={}: Slurm gives a job {} at most", nodes.str(), most));
  return {nodes.least, most};
}

std::vector<std::string> train_arguments(const Arguments& arguments) {
  std::vector<std::string> words;
  for (const std::string& one : arguments.overrides) {
    words.insert(words.end(), {"--set", one});
  }
  for (const std::string& one : arguments.allowed_changes) {
    words.insert(words.end(), {"--allow-change", one});
  }
  return words;
}

}  // namespace

batch::Submission checked_submission(const Arguments& arguments,
                                     const runfile::EffectiveConfig& effective) {
  const Installed installed = find_installed();
  check_site(arguments.site, installed.scripts);
  if (!arguments.time.empty()) {
    tell_short_time(arguments.time);
  }
  const std::vector<Partition> named = ask_partitions(arguments.partition);
  const auto ranks = fixed_ranks(effective.config.mesh);
  const NodeRange nodes = nodes_of(arguments, ranks);
  const int tasks_per_node = tasks_per_node_of(arguments, nodes, ranks, named);
  check_ranks(nodes, tasks_per_node, ranks);
  const std::vector<Partition> partitions =
      those_that_can_run(named, arguments, nodes, tasks_per_node);
  const train::Allocation memory = memory_of(arguments, partitions, tasks_per_node);
  const NodeRange given = nodes_to_get(nodes, partitions);
  for (const int count : std::set{given.least, given.most}) {
    tell_mesh(effective, count, tasks_per_node, memory);
  }
  tell_idle_nodes(effective, given, tasks_per_node, memory);
  const fs::path log_dir = whole_path(effective.config.log.dir);
  const telemetry::RunFiles files(log_dir);
  return {.program = installed.cli,
          .scripts = installed.scripts,
          .functions = installed.functions(),
          // The jobs of a chain submit it again: no single job must replace it under them.
          .script = arguments.chain > 0 ? files.chain_script() : files.submit_script(),
          .log_dir = log_dir,
          .checkpoint_dir = whole_path(effective.config.checkpoint.dir),
          .run_file = whole_path(arguments.run_file),
          .work_folder = fs::current_path(),
          .arguments = train_arguments(arguments),
          .name = name_of(arguments, log_dir),
          .nodes = nodes,
          .tasks_per_node = tasks_per_node,
          .cpus_per_task = arguments.cpus_per_task,
          .time = arguments.time,
          .partition = arguments.partition,
          .account = arguments.account,
          .site = arguments.site,
          .mpi = mpi_for(arguments, nodes.most * tasks_per_node > 1),
          .chain = arguments.chain,
          .beside = arguments.beside,
          .restarts_inside = arguments.restarts_inside,
          .requeue = arguments.requeue,
          .more = arguments.more};
}

}  // namespace fourfold::submit
