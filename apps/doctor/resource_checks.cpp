// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"
#include "placement_checks.hpp"

#include <fourfold/telemetry/human_text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace fourfold::doctor {
namespace {

/// A run takes a little more than its plan: kernels' scratch, the transport, the program itself.
constexpr double usable_share = 0.9;
/// MPI libraries keep messages between ranks of a node in /dev/shm.
constexpr std::int64_t shm_bytes_per_rank = std::int64_t{16} << 20;
/// Beside one connection per rank: data, checkpoints, libraries.
constexpr std::int64_t spare_files = 256;

using telemetry::bytes_text;

struct MachineMemory {
  std::int64_t total_bytes = -1;
  std::int64_t available_bytes = -1;  ///< the least that any of its ranks sees
  std::int64_t needed_bytes = 0;      ///< of all its ranks
};

MachineMemory memory_of(const Ranks& ranks, const Machine& machine) {
  MachineMemory memory;
  for (const int rank : machine.ranks) {
    const RankFacts& facts = ranks.facts[rank];
    memory.total_bytes = facts.memory_bytes;
    if (facts.available_bytes >= 0) {
      memory.available_bytes = memory.available_bytes < 0
                                   ? facts.available_bytes
                                   : std::min(memory.available_bytes, facts.available_bytes);
    }
    memory.needed_bytes += facts.needed_bytes;
  }
  return memory;
}

/// Machines with less memory than the others: one that has lost a module.
void compare_totals(const std::vector<Machine>& machines, const std::vector<MachineMemory>& memory,
                    Check& check) {
  std::vector<double> totals;
  for (const MachineMemory& each : memory) {
    if (each.total_bytes < 0) {
      return;
    }
    totals.push_back(static_cast<double>(each.total_bytes));
  }
  for (const std::size_t i : slow_ones(totals)) {
    check.fail_nodes(machines[i].nodes,
                     fmt::format("{} has {} where half of the nodes have {} or more (a module may "
                                 "have failed); leave it out, unless it is of another kind",
                                 machines[i].str(), bytes_text(memory[i].total_bytes),
                                 bytes_text(static_cast<std::int64_t>(median(totals)))));
  }
}

/// Where others have room for as many ranks, the node is at fault; else the run is too large.
void compare_with_needs(const std::vector<Machine>& machines,
                        const std::vector<MachineMemory>& memory, Check& check) {
  std::size_t too_small = 0;
  for (const MachineMemory& each : memory) {
    too_small += each.available_bytes >= 0 && each.needed_bytes > each.available_bytes ? 1U : 0U;
  }
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const MachineMemory& each = memory[i];
    if (each.available_bytes < 0) {
      continue;
    }
    const std::string figures = fmt::format(
        "the {} rank(s) on {} need {}, and {} is free there", machines[i].ranks.size(),
        machines[i].str(), bytes_text(each.needed_bytes), bytes_text(each.available_bytes));
    if (each.needed_bytes > each.available_bytes && 2 * too_small < machines.size()) {
      check.fail_nodes(machines[i].nodes,
                       figures +
                           " (other nodes have room for theirs); leave it out, or see what "
                           "else runs there");
    } else if (each.needed_bytes > each.available_bytes) {
      check.fail(figures +
                 " (the run is too large for it); use more nodes, a higher mesh.zero or "
                 "mesh.tp, or train.recompute; `fourfold plan` tells what each takes");
      return;
    } else if (static_cast<double>(each.needed_bytes) >
               usable_share * static_cast<double>(each.available_bytes)) {
      check.warn(figures +
                 " (little is left for the transport and the page cache); use a smaller "
                 "train.micro_batch or more nodes");
      return;
    }
  }
}

std::vector<std::string> nodes_where(const Ranks& ranks, bool (*holds)(const RankFacts&)) {
  std::set<std::string> seen;
  std::vector<std::string> nodes;
  for (std::size_t rank = 0; rank < ranks.facts.size(); ++rank) {
    if (holds(ranks.facts[rank]) && seen.insert(ranks.nodes[rank]).second) {
      nodes.push_back(ranks.nodes[rank]);
    }
  }
  return nodes;
}

void check_shell_limits(const Ranks& ranks, Check& check) {
  const std::int64_t wanted = static_cast<std::int64_t>(ranks.facts.size()) + spare_files;
  for (const RankFacts& facts : ranks.facts) {
    if (facts.open_files >= 0 && facts.open_files < wanted) {
      check.warn(fmt::format(
          "{} may open {} files (hang detection and some transports have a connection for each "
          "of {} ranks, besides data and checkpoints); raise it: `ulimit -n {}` before sbatch, "
          "which hands it on, or the limits of slurmd",
          ranks.rank_text(facts.rank), facts.open_files, ranks.facts.size(),
          std::max<std::int64_t>(4096, wanted)));
      break;
    }
  }
  for (const RankFacts& facts : ranks.facts) {
    if (facts.address_bytes >= 0 && facts.address_bytes < 2 * facts.needed_bytes) {
      check.warn(
          fmt::format("{} may address {} (ulimit -v; the run needs {}); lift it: `ulimit -v "
                      "unlimited`",
                      ranks.rank_text(facts.rank), bytes_text(facts.address_bytes),
                      bytes_text(facts.needed_bytes)));
      break;
    }
  }
  const auto short_files = nodes_where(ranks, [](const RankFacts& f) { return f.file_bytes >= 0; });
  if (!short_files.empty()) {
    check.warn(
        fmt::format("files have a largest size on {} (ulimit -f); lift it, or checkpoints "
                    "may end with 73: `ulimit -f unlimited`",
                    first_of(short_files)));
  }
  const auto unlocked =
      nodes_where(ranks, [](const RankFacts& f) { return f.has_rdma && f.locked_bytes >= 0; });
  if (!unlocked.empty()) {
    check.warn(
        fmt::format("locked memory is limited on {} (its InfiniBand registers what it "
                    "sends); ask for `ulimit -l unlimited` in slurmd's limits",
                    first_of(unlocked)));
  }
}

void check_shared_memory(const Ranks& ranks, Check& check) {
  const auto alone = nodes_where(ranks, [](const RankFacts& f) { return !f.shares_memory; });
  if (!alone.empty()) {
    check.warn(
        fmt::format("ranks on {} have no memory in common (the system keeps processes apart: "
                    "containers, ptrace_scope) collectives on a node will be slower",
                    first_of(alone)));
  }
  for (const Machine& machine : machines_of(ranks.facts, ranks.nodes)) {
    const RankFacts& facts = ranks.facts[machine.ranks.front()];
    const std::int64_t count = machine.ranks.size();
    if (count > 1 && (!facts.has_shm || (facts.shm_free_bytes >= 0 &&
                                         facts.shm_free_bytes < count * shm_bytes_per_rank))) {
      check.warn(
          fmt::format("{} in /dev/shm of {} (MPI libraries keep messages between the {} "
                      "ranks there, about {}); make it larger, or remove what others left",
                      facts.has_shm ? bytes_text(facts.shm_free_bytes) + " is free"
                                    : std::string("there is nothing"),
                      machine.str(), count, bytes_text(count * shm_bytes_per_rank)));
      break;
    }
  }
}

}  // namespace

Check memory_check(const Ranks& ranks) {
  Check check("memory");
  const std::vector<Machine> machines = machines_of(ranks.facts, ranks.nodes);
  std::vector<MachineMemory> memory;
  std::size_t tightest = 0;
  for (const Machine& machine : machines) {
    memory.push_back(memory_of(ranks, machine));
    const auto left = [&](std::size_t i) {
      return memory[i].available_bytes - memory[i].needed_bytes;
    };
    tightest = left(memory.size() - 1) < left(tightest) ? memory.size() - 1 : tightest;
  }
  const MachineMemory& least = memory[tightest];
  if (least.available_bytes < 0) {
    check.say("the system does not tell");
    return check;
  }
  check.say(fmt::format("{} free of {} on {}{}", bytes_text(least.available_bytes),
                        bytes_text(least.total_bytes), machines[tightest].str(),
                        least.needed_bytes > 0 ? fmt::format(", whose {} rank(s) need {}",
                                                             machines[tightest].ranks.size(),
                                                             bytes_text(least.needed_bytes))
                                               : std::string()));
  compare_totals(machines, memory, check);
  compare_with_needs(machines, memory, check);
  return check;
}

Check limits_check(const Ranks& ranks) {
  Check check("limits");
  const RankFacts& first = ranks.facts.front();
  std::set<std::string> settings;
  for (const RankFacts& facts : ranks.facts) {
    settings.insert(facts.huge_pages);
  }
  check.say(fmt::format("open files {}, huge pages {}",
                        first.open_files < 0 ? "unlimited" : std::to_string(first.open_files),
                        settings.size() > 1        ? "differ"
                        : first.huge_pages.empty() ? "not known"
                                                   : first.huge_pages));
  if (settings.size() > 1) {
    const auto without =
        nodes_where(ranks, [](const RankFacts& facts) { return facts.huge_pages != "always"; });
    check.warn(
        fmt::format("transparent huge pages are not the same on all nodes (not \"always\" "
                    "on {}) nodes with small pages compute slower; tell the administrators",
                    first_of(without)));
  }
  check_shell_limits(ranks, check);
  check_shared_memory(ranks, check);
  return check;
}

}  // namespace fourfold::doctor
