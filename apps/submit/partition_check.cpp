// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "send.hpp"
#include "submission_check.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace fourfold::submit {
namespace {

using batch::NodeRange;
using batch::Partition;

[[noreturn]] void refuse(const std::string& message) {
  throw UserError(ExitCode::config, message);
}

void check_nodes(const Partition& partition, const NodeRange& nodes) {
  if (nodes.least > partition.nodes) {
    refuse(
        format_message("--nodes={}: partition {} has {} (the job would wait for ever); ask for "
                       "fewer, or name another --partition",
                       nodes.str(), partition.name, partition.nodes));
  }
  if (partition.most_nodes > 0 && nodes.least > partition.most_nodes) {
    refuse(
        format_message("--nodes={}: a job of partition {} has {} at most (this one would wait for "
                       "ever); ask for fewer, or name another --partition",
                       nodes.str(), partition.name, partition.most_nodes));
  }
}

void check_cpus(const Partition& partition, int tasks_per_node, int cpus_per_task) {
  if (tasks_per_node * cpus_per_task > partition.cpus) {
    refuse(format_message(
        "--tasks-per-node={} and --cpus-per-task={}: the nodes of partition {} have {} CPUs (ranks "
        "that share one wait for each other); give a smaller --tasks-per-node or --cpus-per-task",
        tasks_per_node, cpus_per_task, partition.name, partition.cpus));
  }
}

void check_time(const Partition& partition, const std::string& time) {
  if (!time.empty() && !partition.time_limit.empty() &&
      batch::time_limit_s(time) > batch::time_limit_s(partition.time_limit)) {
    refuse(format_message(
        "--time={}: partition {} ends its jobs after {} (this one would be refused, or wait for "
        "ever); ask for less and --chain or --requeue it, or name another --partition",
        time, partition.name, partition.time_limit));
  }
}

/// Why a partition cannot run the job; nothing where it can.
std::optional<UserError> why_not(const Partition& partition, const Arguments& arguments,
                                 const NodeRange& nodes, int tasks_per_node) {
  try {
    check_nodes(partition, nodes);
    check_cpus(partition, tasks_per_node, arguments.cpus_per_task);
    check_time(partition, arguments.time);
    return std::nullopt;
  } catch (const UserError& error) {
    return error;
  }
}

void tell_closed(const Partition& partition) {
  if (!partition.state.empty() && partition.state != "up") {
    log::warning(format_message("partition {} is {}: {}", partition.name, partition.state,
                                partition.state == "down"
                                    ? "the job waits there until somebody opens it (`sinfo`)"
                                    : "Slurm takes no job for it (`sinfo`); name another one"));
  }
}

}  // namespace

std::vector<Partition> ask_partitions(const std::string& names) {
  const auto sinfo =
      ask({"sinfo", "--noheader", std::string("--format=") + batch::partition_format});
  if (!sinfo || !sinfo->is_answer() || !batch::names_partitions(sinfo->text)) {
    log::warning(format_message("{}: nodes, their memory and --mpi are not checked",
                                !sinfo               ? "there is no sinfo here"
                                : sinfo->is_answer() ? "sinfo names no partition"
                                                     : "sinfo " + sinfo->failure()));
    return {};
  }
  if (names.empty()) {
    const auto usual = batch::partition_of(sinfo->text, "");
    if (!usual) {
      refuse("this cluster has no default partition; name one with --partition");
    }
    return {*usual};
  }
  std::vector<Partition> partitions;
  std::istringstream words(names);
  for (std::string name; std::getline(words, name, ',');) {
    const auto one = name.empty() ? std::nullopt : batch::partition_of(sinfo->text, name);
    if (!one) {
      refuse(format_message(
          "--partition={}: there is no partition \"{}\"; `sinfo` shows those there are", names,
          name));
    }
    partitions.push_back(*one);
  }
  return partitions;
}

std::vector<Partition> those_that_can_run(const std::vector<Partition>& partitions,
                                          const Arguments& arguments, const NodeRange& nodes,
                                          int tasks_per_node) {
  std::vector<Partition> able;
  std::vector<UserError> refusals;
  for (const Partition& partition : partitions) {
    if (const auto error = why_not(partition, arguments, nodes, tasks_per_node)) {
      refusals.push_back(*error);
    } else {
      able.push_back(partition);
    }
  }
  if (able.empty() && !refusals.empty()) {
    throw refusals.front();
  }
  for (const UserError& error : refusals) {
    log::warning(error.what());
  }
  std::ranges::for_each(able, tell_closed);
  return able;
}

void tell_short_time(const std::string& time) {
  constexpr std::int64_t as_hours_s = 3600;
  if (std::ranges::count(time, ':') != 1 || time.find('-') != std::string::npos ||
      batch::time_limit_s(time) >= as_hours_s) {
    return;
  }
  log::warning(format_message(
      "--time={} is minutes and seconds to Slurm, {} s; --time={}:00 is hours and minutes", time,
      batch::time_limit_s(time), time));
}

}  // namespace fourfold::submit
