// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "node_facts.hpp"

#include <fourfold/base/message.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::doctor {
namespace {

/// More is somebody else's: a process that a job has left behind.
constexpr std::int64_t most_used_percent = 20;

/// The number of GPUs that most nodes have; of two such, the larger.
std::size_t usual_count(const std::vector<NodeFacts>& nodes) {
  std::map<std::size_t, std::size_t> votes;
  for (const NodeFacts& node : nodes) {
    ++votes[node.gpus.size()];
  }
  const auto most = std::ranges::max_element(votes, [](const auto& a, const auto& b) {
    return a.second < b.second || (a.second == b.second && a.first < b.first);
  });
  return most->first;
}

void check_count(const NodeFacts& node, std::size_t usual, Check& check) {
  const std::size_t count = node.gpus.size();
  const std::string& problem = node.gpu_problem;
  if (count < usual) {
    check.fail_nodes(
        {node.node},
        fmt::format("{} has {} GPUs, others have {} ({}); leave it out, and have it looked at",
                    node.node, count, usual,
                    problem.empty() ? "one may have fallen off its bus" : problem));
  } else if (!problem.empty()) {
    check.fail_nodes(
        {node.node},
        fmt::format("nvidia-smi on {} {} (a GPU may be lost); leave it out, and have it looked at",
                    node.node, problem));
  }
}

void check_gpu(const std::string& node, const GpuFacts& gpu, Check& check) {
  const std::string which = fmt::format("GPU {} of {}", gpu.index, node);
  if (gpu.uncorrected_errors > 0) {
    check.fail_nodes(
        {node},
        fmt::format("{} has had {} memory errors that ECC did not correct since it was reset (a "
                    "run there may end with an error); leave the node out until that is done",
                    which, gpu.uncorrected_errors));
  }
  if (gpu.has_no_spare) {
    check.fail_nodes(
        {node}, fmt::format("{} has bad memory that could not be replaced by spare rows "
                            "(remapped_rows.failure); leave the node out, and have the GPU changed",
                            which));
  } else if (gpu.needs_reset) {
    check.warn(
        fmt::format("{} has bad memory that is replaced at its next reset (remapped rows or "
                    "retired pages are pending) have the node drained and reset",
                    which));
  }
  if (!gpu.slowed_by.empty()) {
    check.fail_nodes({node}, fmt::format("{} is slowed down by its hardware at {} C ({}); leave "
                                         "the node out, and have cooling and power looked at",
                                         which, gpu.temperature_c, fmt::join(gpu.slowed_by, ", ")));
  }
  if (gpu.total_mib > 0 && 100 * gpu.used_mib > most_used_percent * gpu.total_mib) {
    check.warn(
        fmt::format("{} of {} MiB of {} are in use (a process of another job, or one left over); "
                    "see `nvidia-smi` there",
                    gpu.used_mib, gpu.total_mib, which));
  }
}

/// Where some nodes' GPUs reach each other, the others' should.
void check_peers(const std::vector<NodeFacts>& nodes, Check& check) {
  const bool some_reach = std::ranges::any_of(
      nodes, [](const NodeFacts& node) { return node.gpus.size() > 1 && node.apart.empty(); });
  for (const NodeFacts& node : nodes) {
    if (some_reach && !node.apart.empty()) {
      check.fail_nodes(
          {node.node},
          fmt::format("GPUs {} of {} do not reach each other's memory, as those of other nodes do "
                      "(a link may be down); leave it out, and see `nvidia-smi topo -p2p r` there",
                      first_of(node.apart), node.node));
    }
  }
}

void check_drivers(const std::vector<NodeFacts>& nodes, Check& check) {
  std::map<std::string, std::vector<std::string>> nodes_of;
  for (const NodeFacts& node : nodes) {
    if (!node.gpus.empty()) {
      nodes_of[node.gpus.front().driver].push_back(node.node);
    }
  }
  if (nodes_of.size() > 1) {
    const auto fewest = std::ranges::min_element(
        nodes_of, {}, [](const auto& driver) { return driver.second.size(); });
    check.warn(
        fmt::format("the driver of the GPUs on {} is {}, another than elsewhere (what is built for "
                    "one may not run with the other); tell the administrators",
                    first_of(fewest->second), fewest->first));
  }
}

/// A run gives each rank a GPU of its own.
void check_ranks(const Ranks& ranks, Check& check) {
  std::map<std::pair<std::string, std::string>, std::vector<int>> ranks_of;
  for (const RankFacts& facts : ranks) {
    ranks_of[{facts.machine, facts.gpu}].push_back(facts.rank);
  }
  for (const auto& [gpu, sharing] : ranks_of) {
    if (sharing.size() > 1) {
      check.fail(format_message(
          "ranks {} have the same GPU (PCI {} of {}); start one rank per GPU, or ask for more GPUs",
          first_of(sharing), gpu.second, ranks[sharing.front()].node));
    }
  }
}

std::string summary_of(const std::vector<NodeFacts>& nodes, std::size_t usual, bool on_gpus) {
  std::vector<std::string> apart;
  const GpuFacts* hottest = nullptr;
  std::string name;
  for (const NodeFacts& node : nodes) {
    for (const GpuFacts& gpu : node.gpus) {
      name = gpu.name;
      hottest = hottest == nullptr || gpu.temperature_c > hottest->temperature_c ? &gpu : hottest;
    }
    apart.insert(apart.end(), node.apart.begin(), node.apart.end());
  }
  const auto with_gpus =
      std::ranges::count_if(nodes, [](const NodeFacts& node) { return !node.gpus.empty(); });
  std::string text = usual == 0 ? fmt::format("{} of {} nodes have GPUs", with_gpus, nodes.size())
                                : counted(usual, "GPU") + " on a node";
  text += fmt::format(" ({}), at most {} C", name, hottest->temperature_c);
  if (usual > 1) {
    text += apart.empty() ? ", all reach each other" : ", not all reach each other";
  }
  return text + (on_gpus ? "; ranks compute on them" : "; this build computes on the cores");
}

}  // namespace

Check devices_check(const Ranks& ranks, const std::vector<NodeFacts>& nodes, bool on_gpus) {
  Check check("devices");
  if (on_gpus) {
    check_ranks(ranks, check);
  }
  const bool has_gpus =
      std::ranges::any_of(nodes, [](const NodeFacts& node) { return !node.gpus.empty(); });
  if (!has_gpus) {
    check.say(on_gpus ? "nvidia-smi lists none: ranks compute on those that CUDA shows"
                      : "no GPUs here: ranks compute on their cores");
    return check;
  }
  const std::size_t usual = usual_count(nodes);
  for (const NodeFacts& node : nodes) {
    check_count(node, usual, check);
    for (const GpuFacts& gpu : node.gpus) {
      check_gpu(node.node, gpu, check);
    }
  }
  check_peers(nodes, check);
  check_drivers(nodes, check);
  check.say(summary_of(nodes, usual, on_gpus));
  return check;
}

}  // namespace fourfold::doctor
