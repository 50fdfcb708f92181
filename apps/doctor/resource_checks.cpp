// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "rank_checks.hpp"

#include <fourfold/telemetry/human_text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace fourfold::doctor {
namespace {

/// A run takes a little more than its plan: kernels' scratch, the transport, the program itself.
constexpr std::int64_t usable_percent = 90;
/// MPI libraries keep messages between ranks of a node in /dev/shm.
constexpr std::int64_t shm_bytes_per_rank = std::int64_t{16} << 20;
/// Beside one connection per rank: data, checkpoints, libraries.
constexpr std::int64_t spare_files = 256;

using telemetry::bytes_text;

/// Machines with less memory than the others: one that has lost a module.
void compare_totals(const std::vector<Machine>& machines, Check& check) {
  if (std::ranges::any_of(machines, [](const Machine& one) { return one.total_bytes < 0; })) {
    return;
  }
  const std::vector<double> totals =
      each(machines, [](const Machine& one) { return static_cast<double>(one.total_bytes); });
  for (const std::size_t i : slow_ones(totals)) {
    check.fail_nodes(machines[i].nodes,
                     fmt::format("{} has {} where half of the nodes have {} or more (a module may "
                                 "have failed); leave it out, unless it is of another kind",
                                 machines[i].str(), bytes_text(machines[i].total_bytes),
                                 bytes_text(static_cast<std::int64_t>(median(totals)))));
  }
}

/// Where others have room for as many ranks, the node is at fault; else the run is too large.
void compare_with_needs(const std::vector<Machine>& machines, Check& check) {
  const auto is_too_small = [](const Machine& one) {
    return one.available_bytes >= 0 && one.needed_bytes > one.available_bytes;
  };
  const auto too_small = std::ranges::count_if(machines, is_too_small);
  for (const Machine& machine : machines) {
    if (machine.available_bytes < 0) {
      continue;
    }
    const std::string figures = fmt::format(
        "the {} rank(s) on {} need {}, and {} is free there", machine.ranks.size(), machine.str(),
        bytes_text(machine.needed_bytes), bytes_text(machine.available_bytes));
    if (is_too_small(machine) && 2 * too_small < std::ssize(machines)) {
      check.fail_nodes(
          machine.nodes,
          figures +
              " (other nodes have room for theirs); leave it out, or see what else runs there");
    } else if (is_too_small(machine)) {
      check.fail(figures +
                 " (the run is too large for it); use more nodes, a higher mesh.zero or mesh.tp, "
                 "or train.recompute; `fourfold plan` tells what each takes");
      return;
    } else if (100 * machine.needed_bytes > usable_percent * machine.available_bytes) {
      check.warn(figures +
                 " (little is left for the transport and the page cache); use a smaller "
                 "train.micro_batch or more nodes");
      return;
    }
  }
}

void check_shell_limits(const Ranks& ranks, Check& check) {
  const std::int64_t wanted = std::ssize(ranks) + spare_files;
  for (const RankFacts& facts : ranks) {
    if (facts.open_files >= 0 && facts.open_files < wanted) {
      check.warn(fmt::format(
          "{} may open {} files (hang detection and some transports have a connection for each of "
          "{} ranks, besides data and checkpoints); raise it: `ulimit -n {}` before sbatch, which "
          "hands it on, or the limits of slurmd",
          facts.str(), facts.open_files, ranks.size(), std::max<std::int64_t>(4096, wanted)));
      break;
    }
  }
  for (const RankFacts& facts : ranks) {
    if (facts.address_bytes >= 0 && facts.address_bytes < 2 * facts.needed_bytes) {
      check.warn(fmt::format(
          "{} may address {} (ulimit -v; the run needs {}); lift it: `ulimit -v unlimited`",
          facts.str(), bytes_text(facts.address_bytes), bytes_text(facts.needed_bytes)));
      break;
    }
  }
  const auto short_files = nodes_where(ranks, [](const RankFacts& f) { return f.file_bytes >= 0; });
  if (!short_files.empty()) {
    check.warn(
        fmt::format("files have a largest size on {} (ulimit -f); lift it, or checkpoints may end "
                    "with 73: `ulimit -f unlimited`",
                    first_of(short_files)));
  }
  const auto unlocked =
      nodes_where(ranks, [](const RankFacts& f) { return f.has_rdma && f.locked_bytes >= 0; });
  if (!unlocked.empty()) {
    check.warn(
        fmt::format("locked memory is limited on {} (its InfiniBand registers what it sends); ask "
                    "for `ulimit -l unlimited` in slurmd's limits",
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
  for (const Machine& machine : machines_of(ranks)) {
    const RankFacts& facts = ranks[machine.ranks.front()];
    const std::int64_t count = machine.ranks.size();
    if (count > 1 && (!facts.has_shm || (facts.shm_free_bytes >= 0 &&
                                         facts.shm_free_bytes < count * shm_bytes_per_rank))) {
      check.warn(
          fmt::format("{} in /dev/shm of {} (MPI libraries keep messages between the {} ranks "
                      "there, about {}); make it larger, or remove what others left",
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
  const std::vector<Machine> machines = machines_of(ranks);
  const Machine& least = *std::ranges::min_element(
      machines, {}, [](const Machine& one) { return one.available_bytes - one.needed_bytes; });
  if (least.available_bytes < 0) {
    check.say("the system does not tell");
    return check;
  }
  check.say(fmt::format("{} free of {} on {}{}", bytes_text(least.available_bytes),
                        bytes_text(least.total_bytes), least.str(),
                        least.needed_bytes > 0
                            ? fmt::format(", whose {} rank(s) need {}", least.ranks.size(),
                                          bytes_text(least.needed_bytes))
                            : std::string()));
  compare_totals(machines, check);
  compare_with_needs(machines, check);
  return check;
}

Check limits_check(const Ranks& ranks) {
  Check check("limits");
  const RankFacts& first = ranks.front();
  std::set<std::string> settings;
  for (const RankFacts& facts : ranks) {
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
        fmt::format("transparent huge pages are not the same on all nodes (not \"always\" on {}) "
                    "nodes with small pages compute slower; tell the administrators",
                    first_of(without)));
  }
  check_shell_limits(ranks, check);
  check_shared_memory(ranks, check);
  return check;
}

}  // namespace fourfold::doctor
